import { parseArgs } from 'node:util';
import type { EmbeddedLightning } from '../dev/lightning/lightning.ts';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../dev/network.ts';
import { type EmbeddedService, showCollecting, startEmbeddedService } from '../dev/serve.ts';
import { buyByChannel } from './lib/demo/buy-by-channel.ts';
import { buyOneCall } from './lib/demo/buy-one-call.ts';
import { buyOverLightning } from './lib/demo/buy-over-lightning.ts';
import { sellOverLightning } from './lib/demo/sell-over-lightning.ts';
import { startOnFreePort } from './lib/demo/start-service.ts';
import { writeJsonAtomically } from './lib/write-json.ts';

const USAGE = `Starts a local chain and two Lightning nodes with play money, and the service on them; buys one call in USDC, fifty
over a payment channel and one in sats, sells one as another seller, and keeps serving.

  npm run demo [-- --ready-file PATH] [--port N] [--once] [--verbose]

  --ready-file PATH  write a JSON file once the purchases are through: url, chainId, network, rpcUrl, usdc, seller, buyer
                     with its key, and lightning with the network, the seller's nodeId and the buyer's payUrl
  --port N           serve on this port, 0 for any free one (default: PORT, else 4021 or the next free one)
  --once             end after the purchases: status 0 only if all of it held
  --verbose          show the service's log lines too
  --help             this text

Every key of .env.example reaches the service from the environment, for example FACILITATOR_PER_MINUTE=1 npm run demo. The demo
itself sets the keys of the chain, the accounts, the Lightning node, the exchanges and DATA_DIR, and names those that you gave in vain.
Ctrl-C stops everything it started.`;

const WALLET = '/v1/paid/chain/wallet';
const FAILING = '/v1/paid/selftest/fail';
/** Calls over the payment channel. */
const CHANNEL_CALLS = 50;
/** What the buyer of these calls has, in base units: one deposit, and a little more. */
const CHANNEL_BUYER_UNITS = 2_000_000n;
const SATS_WALLET = '/v1/lightning/chain/wallet';

interface Options {
  /** Null: the first free one from PORT on. */
  readonly port: number | null;
  readonly once: boolean;
  readonly verbose: boolean;
  readonly readyFile: string | null;
}

/** Null when help was asked for. Throws a readable error on an unknown option. */
function readOptions(): Options | null {
  const { values } = parseArgs({
    options: {
      'ready-file': { type: 'string' },
      port: { type: 'string', default: process.env.PORT || undefined },
      once: { type: 'boolean', default: false },
      verbose: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  const { once, verbose, port } = values;
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) <= 65_535))
    throw new Error('--port (or PORT) is a number from 0 to 65535');
  if (values['ready-file'] === '') throw new Error('--ready-file needs a path');
  return { port: port === undefined ? null : Number(port), once, verbose, readyFile: values['ready-file'] ?? null };
}

const say = (line: string): void => console.log(line);

function readyDocument(network: EmbeddedNetwork, service: EmbeddedService) {
  const { chainId, rpcUrl, usdc, seller, buyer } = network;
  const { network: name, nodeId, payUrl } = lightningOf(network);
  const lightning = { network: name, nodeId, payUrl };
  return { url: service.url, chainId, network: `eip155:${chainId}`, rpcUrl, usdc, seller, buyer, lightning };
}

function lightningOf({ lightning }: EmbeddedNetwork): EmbeddedLightning {
  if (!lightning) throw new Error('the network was started without Lightning');
  return lightning;
}

/**
 * Makes a buyer of their own for the calls over a channel. A channel can be refunded once in ten minutes, and the buyer
 * whose key is printed can use its own at once.
 */
async function channelBuyer(network: EmbeddedNetwork) {
  const buyer = createAccount();
  await network.fundUsdc(buyer.address, CHANNEL_BUYER_UNITS);
  return buyer;
}

function explain(network: EmbeddedNetwork, { url }: EmbeddedService): void {
  const { payUrl, lndUrl, macaroon } = lightningOf(network);
  const exports = {
    ORIGIN: url,
    BUYER_PRIVATE_KEY: network.buyer.privateKey,
    RPC_URL: network.rpcUrl,
    PAYER_URL: payUrl,
    LND_URL: lndUrl,
    LND_MACAROON: macaroon,
  };
  say(`\nThe data is in ${network.dataDir}. It is deleted when the demo ends. Ctrl-C ends it.`);
  say('Paste these lines into another terminal, in this folder:');
  for (const [name, value] of Object.entries(exports)) say(`  export ${name}=${value}`);
  say(
    'Then the examples of README.md, docs/paying.md and docs/selling.md run there as they are. For a first purchase:',
  );
  say(`  npm run -s pay -- "$ORIGIN${WALLET}?address=${network.buyer.address}"`);
  say(`\nOpen ${url}`);
}

/** Waits for the collector, buys over each rail, and sells as another seller. Throws where anything does not hold. */
async function trade(network: EmbeddedNetwork, origin: string, stopping: AbortSignal): Promise<void> {
  const { buyer, seller } = network;
  const lightning = lightningOf(network);
  say('The collector reads the chain …');
  const headOf = async () => Number(await network.rpc<string>('eth_blockNumber'));
  await showCollecting(origin, headOf, say, stopping);
  const calls = { paid: `${WALLET}?address=${buyer.address}`, failing: FAILING };
  await buyOneCall({ network, origin, calls, say, stopping });
  const channel = { origin, path: calls.paid, calls: CHANNEL_CALLS };
  await buyByChannel({ network, buyer: await channelBuyer(network), ...channel, say, stopping });
  const inSats = { paid: `${SATS_WALLET}?address=${buyer.address}`, other: `${SATS_WALLET}?address=${seller}` };
  await buyOverLightning({ lightning, origin, calls: inSats, say, stopping });
  await sellOverLightning({ lightning, origin, say, stopping });
}

const endedError = (service: EmbeddedService): Error =>
  new Error(`the service ended: ${service.ended()}\n${service.tail()}`);

/** Runs until it is stopped. Then it stops everything that it started, in reverse order, also after a failure. */
async function run(options: Options, stopping: AbortSignal): Promise<void> {
  const started: { stop(): Promise<void> }[] = [];
  const step = async <T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> => {
    const part = await starting;
    started.unshift(part);
    stopping.throwIfAborted();
    return part;
  };
  try {
    say('Starting a local chain and two Lightning nodes …');
    const network = await step(startEmbeddedNetwork({ traffic: true, lightning: true, log: say }));
    const lightning = lightningOf(network);
    say(`  chain ${network.chainId} at ${network.rpcUrl}, half-second blocks, USDC at ${network.usdc}`);
    say(`  the seller’s node ${lightning.nodeId}, with a channel from the buyer’s, on ${lightning.network}`);
    say('Starting the service on it …');
    const onOutput = (text: string) => void (options.verbose && process.stderr.write(text));
    const start = (port: number) => startEmbeddedService(network, { port, onOutput });
    const service = await step(startOnFreePort({ port: options.port, start, say }));
    if (service.ignored.length > 0)
      say(`  set by the demo, so your values are not used: ${service.ignored.join(', ')}`);
    say(`  ready at ${service.url}`);
    await trade(network, service.url, stopping).catch((error: unknown) => {
      throw service.ended() === null ? error : endedError(service);
    });
    if (options.readyFile) await writeJsonAtomically(options.readyFile, readyDocument(network, service));
    if (options.once) return;
    explain(network, service);
    await untilStopped(service, stopping);
  } finally {
    for (const part of started) await part.stop();
  }
}

/** Returns when the demo is stopped. Throws when the service ends by itself. */
async function untilStopped(service: EmbeddedService, stopping: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const watch = setInterval(() => {
      if (stopping.aborted) finish(resolve);
      else if (service.ended() !== null) finish(() => reject(endedError(service)));
    }, 100);
    const finish = (settle: () => void) => {
      clearInterval(watch);
      settle();
    };
  });
}

/** How often it is looked whether npm is still there, in milliseconds. */
const LOOK_MS = 200;

/**
 * Stops the demo when npm, which started it, is gone. npm passes neither a kill -9 nor a hang-up on, and nobody would
 * find the demo afterwards. Without npm the demo may outlive its parent, because a shell may end before its programs.
 */
function stopWithNpm(stop: (why: string) => void): void {
  if (process.env.npm_lifecycle_event !== 'demo') return;
  const npm = process.ppid;
  setInterval(() => {
    if (process.ppid !== npm) stop('the end of npm');
  }, LOOK_MS).unref();
}

async function main(): Promise<number> {
  // The demo's files are its user's alone, as a service's are.
  process.umask(0o077);
  let options: Options | null;
  try {
    options = readOptions();
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return 2;
  }
  if (options === null) {
    say(USAGE);
    return 0;
  }
  const stop = new AbortController();
  stopWithNpm((why) => {
    if (!stop.signal.aborted) stop.abort(new Error(`stopped by ${why}`));
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // A second signal ends the process at once. The child processes end with it.
      if (stop.signal.aborted) process.exit(1);
      say('\nStopping …');
      stop.abort(new Error(`stopped by ${signal}`));
    });
  }
  try {
    await run(options, stop.signal);
    return 0;
  } catch (error) {
    // A stop while serving is the normal end. With --once it means that the purchases did not finish.
    if (stop.signal.aborted && !options.once) return 0;
    console.error(`\nThe demonstration failed: ${error instanceof Error ? error.message : error}`);
    if (!options.verbose) console.error('`npm run demo -- --verbose` shows the service’s log lines too.');
    return 1;
  }
}

process.exitCode = await main();
