import { z } from 'zod';
import { key, optional, type Rule, table } from './table.ts';
import { listOf, oneOf, onOff, privateKey, scaled, text, url, usdc, whole } from './values.ts';

// The process, its ledger, its own facilitator, its test of itself, and its times.

const proxy = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], 'an address or a CIDR range');

export const SERVER = table('The server', [], {
  host: key('HOST', z.string(), '127.0.0.1')`The address to listen on; 0.0.0.0 in a container.`,
  port: key('PORT', whole(0, 65_535), '4021')`0 takes a free one; then set PUBLIC_ORIGIN, or challenges name port 0.`,
  dataDir: key('DATA_DIR', z.string(), 'data')`Directory of the databases, for percall alone: each start closes it to
    other users of the machine. ledger.db holds payments and must survive restarts: back it up.`,
  logLevel: key('LOG_LEVEL', oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'), 'info')`Sales and
    failures are logged at info, every request at debug.`,
  trustedProxies: key('TRUSTED_PROXIES', listOf(proxy), '')`Comma-separated reverse proxies whose X-Forwarded-For is
    trusted. Clients of a proxy that is not named here share one limit. If it sends a forwarding header, a paid reply
    is redelivered only under its payment identifier; if X-Forwarded-For or Forwarded, the log warns once. A proxy that
    sends no such header cannot be recognised: each of its clients can fetch another's reply.`,
  metricsToken: optional('METRICS_TOKEN', z.string().min(16, 'at least 16 characters'))`\`GET /metrics\` asks everyone
    for it (\`Authorization: Bearer\`), this machine too. Without it only programs on this machine read the metrics:
    under localhost, 127.0.0.1 or [::1], without Origin or a forwarding header, and while TRUSTED_PROXIES is empty.`,
  statusHistory: key('STATUS_HISTORY', onOff, 'on')`on: the page /status shows everyone the calls and the revenue of
    each of the last 30 days, and how many calls were refused and why. off: only what was settled today.`,
});

const postgresUrl = url(/^postgres(ql)?$/, 'a postgres:// URL');
/** Says what to do instead of `WORKERS`, which earlier releases had. Its default, 1, is what a service is. */
const workersAreGone: Rule = ({ WORKERS = '1' }) =>
  WORKERS !== '1' &&
  'WORKERS is gone: a service is one process. Start several instances over one LEDGER_URL (PostgreSQL), each with ' +
    'its own PORT and DATA_DIR';

export const LEDGER = table('The ledger: payments, claims, counters, listings', [workersAreGone], {
  url: optional('LEDGER_URL', postgresUrl)`For instances that share a ledger:
    postgres://user:password@host:port/database (?sslmode=verify-full over a network). Empty: DATA_DIR/ledger.db.`,
  poolSize: key('LEDGER_POOL_SIZE', whole(4, 1000), '10')`Connections of one instance: three to write, others to read.`,
  connectTimeoutMs: key('LEDGER_CONNECT_TIMEOUT_MS', whole(1, 60_000), '3000')`For a new connection, or a free one.`,
  statementTimeoutMs: key('LEDGER_STATEMENT_TIMEOUT_MS', whole(100, 60_000), '5000')`For one statement with its wait
    for locks. A connection without an answer is closed after twice that and a second.`,
  mismatchStopsBeyond: key('LEDGER_MISMATCH_STOPS_USDC', usdc, '1')`Each hour the ledger is compared with the chain,
    row by row. While the chain lacks more than this of what the ledger has on a rail, the rail answers 503, until
    \`npm run ledger -- accept-mismatch\`.`,
});

export const FACILITATOR = table('Facilitator: claims of Lightning proofs for any seller', [], {
  perMinute: key('FACILITATOR_PER_MINUTE', whole(), '60')`Settle calls of one client (see Limits). 0 is off.`,
  dailyCap: key('FACILITATOR_DAILY_CAP', whole(1), '20000')`Claims per UTC day of all clients. One client (an IPv4
    address or an IPv6 /48) may have a tenth, and one payee a twentieth. Half is open to every payee, and half is for
    known ones only, at most an equal part for each: claimed for on three of the thirty days before, by two clients.`,
  maxTimeoutSeconds: key('FACILITATOR_MAX_TIMEOUT', whole(1), '3600')`The longest maxTimeoutSeconds that is settled.`,
});

const paidPath = text(/^\/v1\/paid\/[!-~]+$/, 'a path below /v1/paid/, with its query');
const walletOfItsOwn: Rule = ({ SELFTEST_PRIVATE_KEY: own, RELAYER_PRIVATE_KEY: relayer }) =>
  own !== undefined &&
  own.toLowerCase() === relayer?.toLowerCase() &&
  'SELFTEST_PRIVATE_KEY is the relayer’s (the gas it pays would look like charges; give the self-test a wallet of ' +
    'its own)';

export const SELFTEST = table('Self-test: the service buys its own endpoint, as a buyer would', [walletOfItsOwn], {
  privateKey: optional('SELFTEST_PRIVATE_KEY', privateKey)`Key of a wallet with a little USDC that buys through
    PUBLIC_ORIGIN; not the relayer's. Its payments go to SELLER_ADDRESS. Empty: no self-test.`,
  // At least one run a day, because a day's runs are counted. A run takes up to half a minute.
  intervalMs: key('SELFTEST_INTERVAL_SECONDS', scaled(1000, 30, 86_400), '3600')`Mean time between two runs;
    single intervals vary a little.`,
  path: key('SELFTEST_PATH', paidPath, '/v1/paid/rpc/health')`The USDC route that it buys, with its query.`,
});

export const TIMES = table('Times, in milliseconds', [], {
  rpcTimeoutMs: key('RPC_TIMEOUT_MS', whole(1), '3000')`A request to one provider; then the next one is tried.`,
  handlerTimeoutMs: key('HANDLER_TIMEOUT_MS', whole(1), '15000')`A run of an endpoint; then the call fails, uncharged.`,
  settleWaitMs: key('SETTLE_WAIT_MS', whole(1), '20000')`How long an answer waits for its settlement. After it the
    answer is 503 with \`charged: "unknown"\`, and the same payment resumes it.`,
  receiptPollMs: key('RECEIPT_POLL_MS', whole(1), '200')`Between two requests for a receipt. Arc's blocks take 500.`,
  reconcileIntervalMs: key('RECONCILE_INTERVAL_MS', whole(1), '5000')`Between two looks at settlements that are open.`,
});
