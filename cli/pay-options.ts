import { type ParseArgsConfig, parseArgs } from 'node:util';
import { parseSats, parseUsd, parseUsdc } from './money.ts';
import type { Protocol, Rail } from './port.ts';

/** What `percall pay --help` prints. */
export const USAGE = `Buys one answer from a seller that asks to be paid over x402, L402 or MPP,
in USDC or in bitcoin over Lightning.

  percall pay URL [--rail usdc|lightning] [--protocol x402|l402|mpp] [--max-usdc 0.01] [--max-sats 100] [--dry-run]
  percall pay URL --method POST --data '{"a":1}'
  percall pay URL --channel [--max-deposit 1] [--channel-dir DIR]
  percall pay URL --channel --refund [--channel-dir DIR]
  percall pay URL --gateway

  The same call again goes on with the payment that was made for it, until its answer is there. It never pays twice.

  --rail R         how to pay (default: over Lightning where that is offered and a wallet is set, else in USDC)
  --protocol P     how the seller asks (default: x402, then mpp, then l402, where the seller offers several)
  --max-usdc N     the most to pay, in USDC (default 0.01); also --maxUsdc N, maxUsdc=N or MAX_USDC
  --max-sats N     the most to pay, in whole sats (default 100); also --maxSats N, maxSats=N or MAX_SATS;
                   fees count too, where the payer can be limited
  --btc-usd N      your own rate of bitcoin, for budgets in USDC; also BTC_USD (default: the median of three exchanges)
  --discovery URL  a percall service; more than its search lists is not paid, nor anybody else; also DISCOVERY_URL
                   (default: more than the seller's own OpenAPI document lists is not paid)
  --method M       the request's method (default: GET, or POST with --data)
  --data TEXT      the request's body; --content-type T says what it is (default application/json)
  --dry-run        show what would be paid, pay and sign nothing; no key needed
  --channel        pay in USDC over a payment channel: one deposit, then a signed voucher for each call
  --max-deposit N  refuse to deposit more than this with one host in a day, in USDC (default 1), and than this or 5
                   with all hosts. A deposit is the least that the seller takes, or five calls where it names none
  --channel-dir D  the folder with the channels' records (default: channels in the data folder)
  --refund         ask the seller for the rest of the channel; URL is any of the seller's priced routes
  --gateway        pay from a deposit in Circle's Gateway, for which an authorization is open for a week
  --data-dir D     the folder with the record of payments and budgets; also PERCALL_DIR (default ~/.percall)
  --json           print the outcome as one line of JSON
  --help           this text

Keys and wallets are read from the environment, or from a file of mode 0600 that NAME_FILE names:
  BUYER_PRIVATE_KEY   the key that signs for USDC (0x and 64 hex digits)
  NWC_PAYER           a nostr+walletconnect:// connection that may pay; or one of
  LND_PAYER_URL       LND's REST interface, with LND_PAYER_MACAROON (hex)
                      and, for its own certificate, LND_PAYER_TLS_CERT (a file)
  CLN_PAYER_URL       Core Lightning's clnrest, with CLN_PAYER_RUNE (for pay and listpays)
  PHOENIXD_PAYER_URL  phoenixd, with PHOENIXD_PAYER_PASSWORD
  PAYER_URL           a URL that takes POST { "invoice" } and answers { "preimage" }, as the demonstration has one
RPC_URL is a JSON-RPC endpoint of the seller's chain, of your own choice. With it, unused payments are given back to the
budgets once they have expired, and a lost or old record of a channel is corrected.
The answer's body goes to standard output, everything else to standard error.
Exit code: 0 answered, 1 failed before paying, 2 wrong usage, 3 refused before paying, 4 paid and no answer yet: run it
again, 5 the seller says that nothing was charged.

Example: percall pay https://api.example/v1/paid/fees/estimate --max-usdc 0.001`;

/** The command line or the environment is wrong. */
export class UsageError extends Error {}

/** What the buyer asks for. */
export interface Order {
  readonly url: URL;
  readonly method: string;
  readonly body: { readonly bytes: Uint8Array; readonly contentType: string } | null;
  readonly rail: Rail | null;
  /** Null: any. */
  readonly protocol: Protocol | null;
  /** A service whose search lists prices; null: the seller's own list alone. */
  readonly discovery: URL | null;
  readonly ceilingUnits: bigint;
  readonly ceilingMsat: bigint;
  readonly dryRun: boolean;
  readonly json: boolean;
  /** Null: the exchanges' rate. */
  readonly btcUsd: string | null;
  /** Null: the environment's, else the default. */
  readonly dataDir: string | null;
  /** Null: no payment channel. */
  readonly channel: ChannelOrder | null;
  readonly gateway: boolean;
}

/** How a payment channel is used. */
export interface ChannelOrder {
  /** The folder with the channels' records; null: the one of the data folder. */
  readonly directory: string | null;
  /** The most to deposit, in base units. */
  readonly maxDeposit: bigint;
  readonly refund: boolean;
}

/** The default of `--max-deposit` in base units: 1 USDC. */
export const MAX_DEPOSIT = 1_000_000n;
const PROTOCOLS = ['x402', 'l402', 'mpp'] as const;

/** Reads the words of a command line. Throws UsageError for what the command does not know. */
export function readWords<const T extends ParseArgsConfig>(config: T) {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Reads the words of `percall pay`. Throws UsageError. */
export function parse(args: readonly string[]) {
  return readWords({
    args: [...args],
    allowPositionals: true,
    options: {
      rail: { type: 'string' },
      protocol: { type: 'string' },
      'max-usdc': { type: 'string' },
      maxUsdc: { type: 'string' },
      'max-sats': { type: 'string' },
      maxSats: { type: 'string' },
      'btc-usd': { type: 'string' },
      discovery: { type: 'string' },
      method: { type: 'string' },
      data: { type: 'string' },
      'content-type': { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      channel: { type: 'boolean', default: false },
      'max-deposit': { type: 'string' },
      'channel-dir': { type: 'string' },
      refund: { type: 'boolean', default: false },
      gateway: { type: 'boolean', default: false },
      'data-dir': { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
}

type Given = Pick<ReturnType<typeof parse>, 'values' | 'positionals'>;
type Env = Record<string, string | undefined>;

/** Reads an order from the command line and, for ceilings, the rate and the discovery service, from the environment. */
export function readOrder({ values, positionals }: Given, env: Env): Order {
  const targets = positionals.filter((word) => !CEILING.test(word));
  const [target] = targets;
  if (targets.length !== 1 || target === undefined) throw new UsageError('one URL is needed');
  const url = readUrl(target);
  const { rail = null, protocol = null } = values;
  if (rail !== null && rail !== 'usdc' && rail !== 'lightning') throw new UsageError('--rail is usdc or lightning');
  if (protocol !== null && !isProtocol(protocol)) throw new UsageError(`--protocol is ${PROTOCOLS.join(', ')}`);
  const given = { values, positionals };
  const usdc = readCeiling(given, env, { flag: 'max-usdc', name: 'maxUsdc', variable: 'MAX_USDC', usual: '0.01' });
  const ceilingUnits = parseUsdc(usdc.text);
  if (ceilingUnits === null) throw new UsageError(`${usdc.from} is a decimal number with at most 6 decimals`);
  const sats = readCeiling(given, env, { flag: 'max-sats', name: 'maxSats', variable: 'MAX_SATS', usual: '100' });
  const ceilingMsat = parseSats(sats.text);
  if (ceilingMsat === null) throw new UsageError(`${sats.from} is a whole number`);
  const discovery = values.discovery ?? env.DISCOVERY_URL;
  const channel = readChannelOrder(values);
  if (channel && protocol !== null && protocol !== 'x402') throw new UsageError('--channel pays over x402');
  const { gateway = false } = values;
  if (gateway && channel) throw new UsageError('--channel and --gateway are two ways to pay: name one');
  if (gateway && rail === 'lightning') throw new UsageError('--gateway pays in USDC, not over Lightning');
  return {
    url,
    ...readRequest(values),
    rail,
    protocol,
    ceilingUnits,
    ceilingMsat,
    dryRun: values['dry-run'],
    json: values.json ?? false,
    btcUsd: readRate(values['btc-usd'] ?? env.BTC_USD),
    dataDir: values['data-dir'] ?? null,
    channel,
    gateway,
    discovery: discovery ? readUrl(discovery) : null,
  };
}

const isProtocol = (text: string): text is Protocol => PROTOCOLS.some((one) => one === text);

/** An http or https URL. Throws UsageError. */
export function readUrl(text: string): URL {
  if (!URL.canParse(text)) throw new UsageError(`not a URL: ${text}`);
  const url = new URL(text);
  // Fetch refuses it too, with the password in its message.
  if (url.username !== '' || url.password !== '')
    throw new UsageError('a URL with a user name or a password is not taken');
  if (['http:', 'https:'].includes(url.protocol)) return url;
  throw new UsageError(`not an http or https URL: ${text}`);
}

function readRequest({ method, data, 'content-type': contentType }: Given['values']): Pick<Order, 'method' | 'body'> {
  if (data === undefined) {
    if (contentType !== undefined) throw new UsageError('--content-type needs --data');
    return { method: (method ?? 'GET').toUpperCase(), body: null };
  }
  const verb = (method ?? 'POST').toUpperCase();
  if (verb === 'GET' || verb === 'HEAD') throw new UsageError(`--data needs another method than ${verb}`);
  return { method: verb, body: { bytes: Buffer.from(data, 'utf8'), contentType: contentType ?? 'application/json' } };
}

/** A rate in USD, as text. Throws UsageError. */
export function readRate(text: string | undefined): string | null {
  if (!text) return null;
  if (!parseUsd(text)) throw new UsageError('--btc-usd is a decimal number above 0');
  return text;
}

/** A ceiling as a word of its own, `maxUsdc=0.01`. */
const CEILING = /^(maxUsdc|maxSats)=(.*)$/s;

/** The spellings of one ceiling, and its default. */
interface Ceiling {
  readonly flag: 'max-usdc' | 'max-sats';
  readonly name: 'maxUsdc' | 'maxSats';
  readonly variable: string;
  readonly usual: string;
}

/**
 * The command line's ceiling, else the environment's, else the default. Throws UsageError for two different ones,
 * because
 * one of them is a mistake.
 */
function readCeiling({ values, positionals }: Given, env: Env, ceiling: Ceiling) {
  const { flag, name, variable, usual } = ceiling;
  const words = positionals.flatMap((word) => {
    const [, named, text = ''] = CEILING.exec(word) ?? [];
    return named === name ? [{ text, from: name }] : [];
  });
  const flags = [flag, name].flatMap((key) => {
    const text = values[key as Ceiling['flag']];
    return text === undefined ? [] : [{ text, from: `--${key}` }];
  });
  const [first, ...more] = [...flags, ...words];
  const other = more.find(({ text }) => text !== first?.text);
  if (first && other) throw new UsageError(`${first.from} and ${other.from} are two ceilings: name one`);
  return first ?? (env[variable] ? { text: env[variable], from: variable } : { text: usual, from: `--${flag}` });
}

function readChannelOrder(values: Given['values']): ChannelOrder | null {
  const { channel, refund, 'max-deposit': most, 'channel-dir': directory = null } = values;
  if (!channel) {
    const stray = (['refund', 'max-deposit', 'channel-dir'] as const).find((name) => values[name]);
    if (stray) throw new UsageError(`--${stray} needs --channel`);
    return null;
  }
  if (values.rail === 'lightning') throw new UsageError('--channel pays in USDC, not over Lightning');
  if (refund && values['dry-run']) throw new UsageError('--refund pays nothing, so it has no --dry-run');
  if (directory === '') throw new UsageError('--channel-dir needs a folder');
  const maxDeposit = most === undefined ? MAX_DEPOSIT : parseUsdc(most);
  if (maxDeposit === null) throw new UsageError('--max-deposit is a decimal number with at most 6 decimals');
  return { directory, maxDeposit, refund };
}
