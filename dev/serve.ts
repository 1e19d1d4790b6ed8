import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type GuardedChild, startGuarded } from './child.ts';
import { DISTRIBUTOR } from './dex.ts';
import type { EmbeddedLightning } from './lightning/lightning.ts';
import type { EmbeddedNetwork } from './network.ts';

interface EmbeddedOptions {
  readonly selfTest?: boolean;
  readonly channels?: boolean;
  readonly demoBuyer?: boolean;
}

/**
 * The service's environment on an embedded network: no client limits, and a data directory that is deleted with the network.
 * With `selfTest` it buys from itself every minute, with `channels` it offers payment channels, and with `demoBuyer` its pages pay for a reader on this
 * machine. All are off by default: tests that count payments need no other buyer, and tests of one rail need no other offer.
 */
export function embeddedEnvironment(
  network: EmbeddedNetwork,
  { selfTest = false, channels = false, demoBuyer = false }: EmbeddedOptions = {},
): Record<string, string> {
  return {
    NETWORK: 'custom',
    NETWORK_NAME: 'Arc',
    PLAY_MONEY: 'on',
    CHAIN_ID: String(network.chainId),
    RPC_URLS: network.rpcUrl,
    WS_URLS: network.wsUrl,
    USDC_ADDRESS: network.usdc,
    SELLER_ADDRESS: network.seller,
    RELAYER_PRIVATE_KEY: network.relayer.privateKey,
    DATA_DIR: network.dataDir,
    ...watchEnvironment(network),
    ...(network.lightning && lightningEnvironment(network.lightning)),
    ...(selfTest && { SELFTEST_PRIVATE_KEY: network.selfTester.privateKey, SELFTEST_INTERVAL_SECONDS: '60' }),
    ...(demoBuyer && { DEMO_BUYER_PRIVATE_KEY: network.buyer.privateKey }),
    ...(channels && { CHANNELS: 'on', CHANNELS_AUTHORIZER_KEY: network.authorizer.privateKey }),
    RATE_LIMIT_FREE_PER_MINUTE: '0',
    RATE_LIMIT_PRICED_PER_MINUTE: '0',
    CHANNELS_CLIENT_DEPOSITS_PER_DAY: '0',
  };
}

/** The watch list of a network with a DEX. */
function watchEnvironment({ eurc, projectToken, pools }: EmbeddedNetwork): Record<string, string> {
  if (pools === null) return {};
  return {
    WATCH_TOKENS: `EURC:${eurc}`,
    DEX_VENUES: `v2:${pools.factories.v2}:Uniswap v2,v3:${pools.factories.v3}:Uniswap v3,v4:${pools.poolManager}:Uniswap v4`,
    PROJECT_TOKEN_ADDRESS: projectToken,
    PROJECT_TOKEN_SYMBOL: 'CALL',
    DISTRIBUTOR_ADDRESS: DISTRIBUTOR,
  };
}

/** The keys of an embedded environment that an operator may set otherwise. They are limits, and none of them names the network. */
const LIMITS: ReadonlySet<string> = new Set([
  'RATE_LIMIT_FREE_PER_MINUTE',
  'RATE_LIMIT_PRICED_PER_MINUTE',
  'CHANNELS_CLIENT_DEPOSITS_PER_DAY',
  'LIGHTNING_INVOICES_PER_MINUTE',
  'LIGHTNING_INVOICES_TOTAL_PER_MINUTE',
  'SELFTEST_INTERVAL_SECONDS',
]);

/**
 * What an embedded network adds to an operator's environment. The operator's own limits stay. `ignored` names the keys whose given value cannot hold,
 * because the embedded network sets them.
 */
export function besideOperators(
  given: Readonly<Record<string, string | undefined>>,
  embedded: Readonly<Record<string, string>>,
): { environment: Record<string, string>; ignored: string[] } {
  const isGiven = (key: string): boolean => (given[key] ?? '') !== '';
  const entries = Object.entries(embedded);
  return {
    environment: Object.fromEntries(entries.filter(([key]) => !(LIMITS.has(key) && isGiven(key)))),
    ignored: entries
      .filter(([key, value]) => !LIMITS.has(key) && isGiven(key) && given[key] !== value)
      .map(([key]) => key)
      .sort(),
  };
}

/** The settings for the seller's node and for the price of a bitcoin. */
export function lightningEnvironment(lightning: EmbeddedLightning): Record<string, string> {
  const { networkName, lndUrl, macaroon, nodeId, exchanges } = lightning;
  return {
    LIGHTNING_RECEIVER: 'lnd',
    LIGHTNING_NETWORK: networkName,
    LIGHTNING_NODE_URL: lndUrl,
    LIGHTNING_NODE_KEY: nodeId,
    LND_MACAROON: macaroon,
    LIGHTNING_INVOICES_PER_MINUTE: '0',
    LIGHTNING_INVOICES_TOTAL_PER_MINUTE: '0',
    UPSTREAM_COINBASE_URL: exchanges.urls.coinbase,
    UPSTREAM_KRAKEN_URL: exchanges.urls.kraken,
    UPSTREAM_BITSTAMP_URL: exchanges.urls.bitstamp,
  };
}

/** The service as a process of its own. */
export interface EmbeddedService {
  readonly url: string;
  readonly pid: number;
  /** The keys of this process's environment that did not reach it, because the embedded network sets them. */
  readonly ignored: readonly string[];
  stop(): Promise<void>;
  /** Null while it runs; then how it ended, as text. */
  ended(): string | null;
  /** Its last lines of output. */
  tail(): string;
}

/** Time-out until `/readyz` answers 200, which takes about a second on an idle machine. On a very busy one it has taken longer than 30 s. */
const READY_MS = 120_000;

/** The service promises to stop within 10 s. It is killed one second later. */
const STOP_MS = 11_000;

/**
 * Starts the service on an embedded network as a child process and returns when it is ready.
 * Rejects with the service's last lines of output when it ends first. The service gets this process's environment too, and `env` before it, except the
 * keys that the embedded network sets.
 */
export async function startEmbeddedService(
  network: EmbeddedNetwork,
  options: { port: number; env?: Readonly<Record<string, string>>; onOutput?: (text: string) => void },
): Promise<EmbeddedService> {
  const { port } = options;
  const url = `http://127.0.0.1:${port}`;
  const given = { ...process.env, ...options.env };
  const { environment, ignored } = besideOperators(given, {
    ...embeddedEnvironment(network, { selfTest: true, channels: true, demoBuyer: true }),
    HOST: '127.0.0.1',
    PORT: String(port),
    PUBLIC_ORIGIN: url,
  });
  const env = { LOG_LEVEL: 'warn', ...given, ...environment };
  const server = fileURLToPath(new URL('../src/server.ts', import.meta.url));
  const child = await startGuarded(process.execPath, [server], {
    // A directory without a .env file, because the service reads .env from its working directory.
    cwd: network.dataDir,
    env,
    ...(options.onOutput && { onOutput: options.onOutput }),
  });
  await untilReady(child, url, network.seller);
  return { url, pid: child.pid, ignored, tail: child.tail, stop: () => child.stop(STOP_MS), ended: child.ended };
}

async function untilReady(child: GuardedChild, url: string, seller: string): Promise<void> {
  const deadline = Date.now() + READY_MS;
  let last = 'no answer';
  while (Date.now() < deadline && child.ended() === null) {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2000) }).catch(() => null);
    // Another program may have taken the port, even another demo: then the service will end, but may not have yet.
    if (answer?.status === 200 && (await sellsFor(seller, url)) && child.ended() === null) return;
    if (answer) last = `status ${answer.status}`;
    await delay(50);
  }
  const how = child.ended() ?? `/readyz: ${last} after ${READY_MS / 1000} s`;
  await child.stop(0);
  throw new Error(`the service did not start (${how}):\n${child.tail()}`);
}

/** Whether the service at this address is paid to this address, which is new in each embedded network. */
async function sellsFor(seller: string, url: string): Promise<boolean> {
  const answer = await fetch(`${url}/v1/paid`, { signal: AbortSignal.timeout(2000) }).catch(() => null);
  return (await answer?.text().catch(() => ''))?.toLowerCase().includes(seller.toLowerCase()) ?? false;
}

/** How long a demonstration waits for the collector, in milliseconds. The collector goes on reading afterwards. */
const WAIT_MS = 10_000;
const POLL_MS = 250;

/** One line for a person: how much of the chain the service can answer from. `collected` is null before the collector's first block. */
export function progressLine(collected: number | null, head: number): string {
  if (collected === null) return `  none of the chain’s ${head} blocks is collected yet`;
  const behind = Math.max(0, head - collected);
  return behind === 0
    ? `  all ${head} blocks of the chain are collected`
    : `  ${collected} of the chain’s ${head} blocks are collected`;
}

/** Prints the collector's progress until it has reached the head, or WAIT_MS is over. `headOf` reads the chain's head. */
export async function showCollecting(
  origin: string,
  headOf: () => Promise<number>,
  say: (line: string) => void,
  stopping: AbortSignal,
): Promise<void> {
  let shown = '';
  for (const until = Date.now() + WAIT_MS; Date.now() < until; ) {
    const head = await headOf();
    const answer = await fetch(`${origin}/readyz`, { signal: stopping });
    const { checks } = (await answer.json()) as { checks?: { collector?: { collected?: number | null } } };
    const collected = checks?.collector?.collected ?? null;
    const line = progressLine(collected, head);
    if (line !== shown) say(line);
    if (collected !== null && collected >= head) return;
    shown = line;
    await delay(POLL_MS, undefined, { signal: stopping });
  }
  say('  it is still reading; answers about the past grow while it does');
}
