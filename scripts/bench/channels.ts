import { join } from 'node:path';
import { freePort } from '../../dev/child.ts';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { type ChannelMeasure, measureChannels, openBuyers } from './channel-load.ts';
import { type Checkout, type Comparison, inTurns, ratio, readComparison, startCheckout } from './checkouts.ts';
import { cpuMsOfAll, median, percentile, type Subject, startSubject } from './lib.ts';
import { type Measure, measurePaid } from './paid-load.ts';
import { readChallenge } from './payments.ts';
import { getOf, openRawClient } from './raw-client.ts';

const [PAID, FREE] = ['/v1/paid/fees/estimate', '/v1/fees/estimate'];
const BUYERS = 64;
const ROUNDS = 5;
const SECONDS = 4;
/** Calls of one buyer alone, of each kind, in turns of TURN calls. */
const [ALONE, TURN] = [2000, 50];
const PAID_ROUNDS = 2;
const GOAL = { perSecond: 3000, p99Ms: 50, times: 3, overFreeMs: 3 };

/** One subject's round, with the processor time of a call in milliseconds: the server's, and that of PostgreSQL. */
interface Round extends ChannelMeasure {
  readonly cpuMs: number;
  readonly databaseMs: number;
}

/** A server with buyers of its own, and its rounds. */
interface Side {
  readonly name: string;
  readonly server: Subject;
  readonly buyers: Awaited<ReturnType<typeof openBuyers>>;
  /** More vouchers than a buyer can use in a round: they are signed before it. */
  readonly most: number;
  readonly rounds: Round[];
}

/**
 * Measures calls that are paid from channels: our service in one process, the SDK's Express middleware, and our own
 * `exact` rail, in one run. The SDK's server keeps its channels in memory. With `--before FOLDER`: our service beside
 * that of another checkout. With `--ledger postgres` each service has a database in place of a SQLite file.
 */
export async function benchChannels(options: readonly string[] = []): Promise<void> {
  const comparison = await readComparison('channels', options);
  const network = await startEmbeddedNetwork();
  const subjects: Subject[] = [];
  const started = async (starting: Promise<Subject>): Promise<Subject> => {
    const subject = await starting;
    subjects.push(subject);
    return subject;
  };
  try {
    const sides: Side[] = [];
    for (const one of comparison.checkouts) {
      const server = await started(startPercall(network, one, comparison));
      const name = comparison.checkouts.length > 1 ? one.name : 'percall';
      sides.push(await openSide(network, name, server, PAID, 600, BUYERS));
    }
    if (sides.length > 1) {
      await measureBeside(sides, comparison);
      return reportRatios(sides);
    }
    const express = await started(startExpress(network));
    // The SDK's server refuses some of several deposits at once.
    sides.push(await openSide(network, '@x402/express', express, '/paid', 150, 1));
    await measureBeside(sides, comparison);
    const origin = sides[0]?.server.origin ?? '';
    report(sides, await measureExact(network, origin + PAID), await measureAlone(network, origin));
  } finally {
    await Promise.all(subjects.map(({ stop }) => stop()));
    await network.stop();
    await comparison.postgres?.stop();
  }
}

async function openSide(
  network: EmbeddedNetwork,
  name: string,
  server: Subject,
  path: string,
  most: number,
  atOnce: number,
): Promise<Side> {
  return { name, server, buyers: await openBuyers(network, server.origin + path, BUYERS, atOnce), most, rounds: [] };
}

async function startPercall(
  network: EmbeddedNetwork,
  { name, folder }: Checkout,
  { postgres }: Comparison,
): Promise<Subject> {
  const port = await freePort();
  await postgres?.createDatabase(name);
  const [relayer, seller] = [createAccount(), createAccount()];
  await network.fundNative(relayer.address, 10n ** 21n);
  return startCheckout(folder, port, '/readyz', {
    ...embeddedEnvironment(network),
    RELAYER_DAILY_GAS_USDC: 'off',
    PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
    LOG_LEVEL: 'warn',
    PAYER_MAX_OPEN: '0',
    // A ledger, a seller and a relayer of its own.
    DATA_DIR: join(network.dataDir, `percall-${name}`),
    ...(postgres && { LEDGER_URL: postgres.url(name) }),
    SELLER_ADDRESS: seller.address,
    RELAYER_PRIVATE_KEY: relayer.privateKey,
    CHANNELS: 'on',
    CHANNELS_AUTHORIZER_KEY: createAccount().privateKey,
    // Each answer is kept, with 300 bytes.
    REPLY_STORE_MB: '1024',
  });
}

async function startExpress(network: EmbeddedNetwork): Promise<Subject> {
  const relayer = createAccount();
  await network.fundNative(relayer.address, 10n ** 21n);
  return startSubject('scripts/bench/servers/express-channels.ts', await freePort(), '/', {
    RPC_URL: network.rpcUrl,
    RELAYER_KEY: relayer.privateKey,
    AUTHORIZER_KEY: createAccount().privateKey,
    SELLER: network.seller,
    USDC: network.usdc,
  });
}

/** Interleaved rounds of all servers. Round 0 warms up. */
async function measureBeside(sides: readonly Side[], { postgres }: Comparison): Promise<void> {
  const spent = ({ server }: Side) => [cpuMsOfAll(server.pid), postgres ? cpuMsOfAll(postgres.pid()) : 0] as const;
  for (let round = 0; round <= ROUNDS; round++) {
    await inTurns(sides, round, async (side) => {
      const { server, most, buyers, rounds } = side;
      for (const buyer of buyers) buyer.sign(most);
      const [cpu, database] = spent(side);
      const measure = await measureChannels(server.origin, buyers, SECONDS, most);
      const [cpuNow, databaseNow] = spent(side);
      const each = { cpuMs: (cpuNow - cpu) / measure.calls, databaseMs: (databaseNow - database) / measure.calls };
      if (round > 0) rounds.push({ ...measure, ...each });
    });
  }
}

async function measureExact(network: EmbeddedNetwork, url: string): Promise<Measure[]> {
  // No account's gas is shown.
  const seller = { name: 'percall', urls: [url], relayer: '', challenge: await readChallenge(url) };
  const measures: Measure[] = [];
  for (let round = 0; round < PAID_ROUNDS; round++) measures.push(await measurePaid(network, seller, BUYERS));
  return measures;
}

/** The latencies of one buyer's calls in ms: vouchers, and the free route over the same connection, in turns. */
async function measureAlone(network: EmbeddedNetwork, origin: string) {
  const [buyer] = await openBuyers(network, origin + PAID, 1);
  if (!buyer) throw new Error('no buyer');
  buyer.sign(ALONE);
  const connection = await openRawClient(origin);
  const free = getOf(origin, FREE);
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

function report(sides: readonly Side[], exact: readonly Measure[], alone: { voucher: number; free: number }): void {
  const of = <T>(measures: readonly T[], pick: (one: T) => number) => median(measures.map(pick));
  const row = (name: string, measures: readonly Omit<Round, 'calls' | 'cpuMs' | 'databaseMs'>[], cpuMs: string) => {
    const figures = [
      of(measures, ({ perSecond }) => perSecond).toFixed(0),
      of(measures, ({ p50 }) => p50).toFixed(1),
      of(measures, ({ p99 }) => p99).toFixed(1),
      cpuMs,
    ];
    console.log([name.padEnd(20), ...figures.map((text) => text.padStart(8))].join(' '));
  };
  console.log(
    `${BUYERS} buyers, closed loop, medians of ${ROUNDS} interleaved rounds of ${SECONDS} s; CPU in ms a call`,
  );
  console.log('channels              calls/s   p50 ms   p99 ms      CPU');
  for (const { name, rounds } of sides) row(name, rounds, of(rounds, ({ cpuMs }) => cpuMs).toFixed(2));
  row('percall, exact rail', exact, '-');
  const rates = sides.map(({ rounds }) => of(rounds, ({ perSecond }) => perSecond));
  const [ours = Number.NaN, theirs = Number.NaN] = rates;
  const times = `${(ours / theirs).toFixed(1)} ×`;
  console.log(
    `goals: ${GOAL.perSecond} durable calls/s, p99 ${GOAL.p99Ms} ms, ${GOAL.times} × the SDK's server (${times})`,
  );
  console.log(
    `one buyer: p50 ${alone.voucher.toFixed(2)} ms by voucher, ${alone.free.toFixed(2)} ms on the free route; at most ${GOAL.overFreeMs} ms more is the goal`,
  );
}

/** Prints what this checkout needs and does in the terms of the other one. */
function reportRatios([before, after]: readonly Side[]): void {
  if (!before || !after) return;
  console.log(`${BUYERS} buyers, closed loop, ${ROUNDS} interleaved rounds of ${SECONDS} s; medians`);
  console.log('                      calls/s   p99 ms  CPU ms a call  of the database');
  for (const { name, rounds } of [before, after]) {
    const of = (pick: (one: Round) => number, digits: number) => median(rounds.map(pick)).toFixed(digits);
    const [rate, p99] = [of(({ perSecond }) => perSecond, 0), of((one) => one.p99, 1)];
    const [cpu, database] = [of(({ cpuMs }) => cpuMs, 3), of(({ databaseMs }) => databaseMs, 3)];
    console.log(
      [name.padEnd(20), rate.padStart(8), p99.padStart(8), cpu.padStart(14), database.padStart(16)].join(' '),
    );
  }
  const times = (pick: (one: Round) => number) => ratio(before.rounds.map(pick), after.rounds.map(pick));
  const [rate, cpu, database] = [
    times((one) => one.perSecond),
    times((one) => one.cpuMs),
    times((one) => one.databaseMs),
  ];
  console.log(`after / before: ${rate} calls/s, ${cpu} CPU a call, ${database} of the database`);
}
