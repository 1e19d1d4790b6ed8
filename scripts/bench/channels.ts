import { createAccount } from '../../src/embedded/accounts.ts';
import { freePort } from '../../src/embedded/free-port.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../src/embedded/network.ts';
import { embeddedEnvironment } from '../../src/embedded/serve.ts';
import { getOf, openRawClient } from '../lib/pay/raw-client.ts';
import { type ChannelMeasure, measureChannels, openBuyers } from './channel-load.ts';
import { cpuMsOf, median, percentile, type Subject, startSubject } from './lib.ts';
import { type Measure, measurePaid } from './paid-load.ts';
import { readChallenge } from './payments.ts';

const BUYERS = 64;
const ROUNDS = 5;
const SECONDS = 4;
/** Calls of one buyer alone, of each kind, in turns of TURN calls. */
const [ALONE, TURN] = [2000, 50];
const PAID_ROUNDS = 2;
const GOAL = { perSecond: 3000, p99Ms: 50, times: 3, overFreeMs: 3 };

/** One subject's round, with the processor time of a call in milliseconds. */
interface Round extends ChannelMeasure {
  readonly cpuMs: number;
}

/** Measures calls that are paid from channels: our service beside the SDK's Express middleware, and beside our own `exact` rail, in one run. */
export async function benchChannels(): Promise<void> {
  const network = await startEmbeddedNetwork();
  const subjects: Subject[] = [];
  try {
    const percall = await startPercall(network);
    subjects.push(percall);
    const express = await startExpress(network);
    subjects.push(express);
    const [paidUrl, freeUrl] = [`${percall.origin}/v1/paid/fees/estimate`, `${percall.origin}/v1/fees/estimate`];
    const ours = await measureBeside(network, percall, paidUrl, express);
    const exact = await measureExact(network, paidUrl);
    const alone = await measureAlone(network, paidUrl, freeUrl);
    report(ours, exact, alone);
  } finally {
    await Promise.all(subjects.map(({ stop }) => stop()));
    await network.stop();
  }
}

async function startPercall(network: EmbeddedNetwork): Promise<Subject> {
  const port = await freePort();
  return startSubject('src/server.ts', port, '/readyz', {
    ...embeddedEnvironment(network),
    ...{ PUBLIC_ORIGIN: `http://127.0.0.1:${port}`, LOG_LEVEL: 'warn', PAYER_MAX_OPEN: '0' },
    ...{ CHANNELS: 'on', CHANNELS_AUTHORIZER_KEY: createAccount().privateKey },
    // A kept answer is 300 bytes, for 15 minutes.
    REPLY_STORE_MB: '1024',
  });
}

async function startExpress(network: EmbeddedNetwork): Promise<Subject> {
  const relayer = createAccount();
  await network.fundNative(relayer.address, 10n ** 21n);
  return startSubject('scripts/bench/servers/express-channels.ts', await freePort(), '/', {
    ...{ RPC_URL: network.rpcUrl, RELAYER_KEY: relayer.privateKey, AUTHORIZER_KEY: createAccount().privateKey },
    ...{ SELLER: network.seller, USDC: network.usdc },
  });
}

/** Interleaved rounds of both servers, each with buyers of its own. Round 0 warms up. */
async function measureBeside(network: EmbeddedNetwork, percall: Subject, url: string, express: Subject) {
  const sides = [];
  // More vouchers than the server can take in a round: they are signed before it.
  for (const [server, at, most, atOnce] of [
    [percall, url, 600, BUYERS],
    [express, `${express.origin}/paid`, 150, 1],
  ] as const) {
    sides.push({ server, most, buyers: await openBuyers(network, at, BUYERS, atOnce), rounds: [] as Round[] });
  }
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { server, most, buyers, rounds } of sides) {
      for (const buyer of buyers) buyer.sign(most);
      const before = cpuMsOf(server.pid);
      const measure = await measureChannels(server.origin, buyers, SECONDS, most);
      const cpuMs = (cpuMsOf(server.pid) - before) / measure.calls;
      if (round > 0) rounds.push({ ...measure, cpuMs });
    }
  }
  return sides.map(({ rounds }) => rounds);
}

async function measureExact(network: EmbeddedNetwork, url: string): Promise<Measure[]> {
  const relayer = network.relayer.address.toLowerCase();
  const seller = { name: 'percall', urls: [url], relayer, challenge: await readChallenge(url) };
  const measures: Measure[] = [];
  for (let round = 0; round < PAID_ROUNDS; round++) measures.push(await measurePaid(network, seller, BUYERS));
  return measures;
}

/** The latencies of one buyer's calls in ms: vouchers, and the free route over the same connection, in turns. */
async function measureAlone(network: EmbeddedNetwork, paidUrl: string, freeUrl: string) {
  const [buyer] = await openBuyers(network, paidUrl, 1);
  if (!buyer) throw new Error('no buyer');
  buyer.sign(ALONE);
  const { origin, pathname } = new URL(freeUrl);
  const connection = await openRawClient(origin);
  const free = getOf(origin, pathname);
  const times = { voucher: [] as number[], free: [] as number[] };
  const timed = async (bytes: Uint8Array, into: number[]) => {
    const sent = performance.now();
    const body = await connection.send(bytes);
    into.push(performance.now() - sent);
    if (!body.includes('"costUsdc"')) throw new Error(`no answer: ${body}`);
  };
  while (buyer.ready.length > 0) {
    for (const bytes of buyer.ready.splice(0, TURN)) await timed(bytes, times.voucher);
    for (let call = 0; call < TURN; call++) await timed(free, times.free);
  }
  connection.close();
  return { voucher: percentile(times.voucher, 0.5), free: percentile(times.free, 0.5) };
}

function report(
  [ours = [], theirs = []]: readonly Round[][],
  exact: readonly Measure[],
  alone: { voucher: number; free: number },
): void {
  const row = (name: string, rate: number, p50: number, p99: number, cpuMs?: number) =>
    console.log(
      [
        name.padEnd(28),
        ...[rate.toFixed(0), p50.toFixed(1), p99.toFixed(1), cpuMs?.toFixed(2) ?? '-'].map((text) => text.padStart(8)),
      ].join(' '),
    );
  const of = <T>(measures: readonly T[], pick: (one: T) => number) => median(measures.map(pick));
  const rowOf = (name: string, rounds: readonly Round[]) =>
    row(
      name,
      of(rounds, (one) => one.perSecond),
      of(rounds, (one) => one.p50),
      of(rounds, (one) => one.p99),
      of(rounds, (one) => one.cpuMs),
    );
  console.log(
    `${BUYERS} buyers, closed loop, medians of ${ROUNDS} interleaved rounds of ${SECONDS} s; CPU in ms a call`,
  );
  console.log('                              calls/s   p50 ms   p99 ms      CPU');
  rowOf('percall, channels (SQLite)', ours);
  rowOf('@x402/express, channels', theirs);
  row(
    'percall, exact',
    of(exact, (one) => one.perSecond),
    of(exact, (one) => one.p50),
    of(exact, (one) => one.p99),
  );
  const rate = of(ours, (one) => one.perSecond);
  const times = rate / of(theirs, (one) => one.perSecond);
  const overFree = alone.voucher - alone.free;
  console.log(
    `${rate.toFixed(0)} durable paid calls/s (goal ${GOAL.perSecond}), ${times.toFixed(1)} × the SDK's server (goal ${GOAL.times})`,
  );
  console.log(`p99 ${of(ours, (one) => one.p99).toFixed(1)} ms (goal ${GOAL.p99Ms})`);
  console.log(
    `one buyer: p50 ${alone.voucher.toFixed(2)} ms by voucher, ${alone.free.toFixed(2)} ms on the free route: ${overFree.toFixed(2)} ms more (goal ${GOAL.overFreeMs})`,
  );
}
