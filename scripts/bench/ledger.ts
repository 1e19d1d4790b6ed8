import { join } from 'node:path';
import { freePort } from '../../dev/child.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { addressOf } from '../../src/lib/secp256k1.ts';
import { childrenOf } from '../lib/child-processes.ts';
import { type Postgres, startPostgres } from '../lib/ledger/postgres.ts';
import { openClients, settleAll, settleRequests } from './claims.ts';
import { cpuMsOf, median, percentile, type Subject, startService } from './lib.ts';
import { type Measure, measurePaid, SECONDS } from './paid-load.ts';
import { readChallenge } from './payments.ts';

const BUYERS = 64;
const ROUNDS = 2;
const CONNECTIONS = 64;
const CLAIMS = 6000;

/** The databases under test, and the number of instances on each. */
const SETUPS = [
  { name: 'SQLite', instances: 1, database: null },
  { name: 'PostgreSQL x1', instances: 1, database: 'one' },
  { name: 'PostgreSQL x2', instances: 2, database: 'two' },
  { name: 'PostgreSQL x4', instances: 4, database: 'four' },
] as const;
type Setup = (typeof SETUPS)[number];

/** Measures paid calls and Lightning claims a second for each ledger. Everything runs on this machine, so all parts share its processor time. */
export async function benchLedger(): Promise<void> {
  const network = await startEmbeddedNetwork();
  const postgres = await startPostgres();
  console.log(
    `medians of ${ROUNDS} rounds: ${BUYERS} buyers for ${SECONDS} s, ${CLAIMS} claims over ${CONNECTIONS} connections; CPU in ms a call`,
  );
  console.log('ledger         paid/s   p50   p99  CPU instances  postgres |  claims/s   p99  CPU instances  postgres');
  try {
    for (const setup of SETUPS) console.log(await measureSetup(network, postgres, setup));
  } finally {
    await postgres.stop();
    await network.stop();
  }
}

async function measureSetup(network: EmbeddedNetwork, postgres: Postgres, setup: Setup): Promise<string> {
  if (setup.database) await postgres.createDatabase(setup.database);
  const subjects: Subject[] = [];
  try {
    for (let at = 0; at < setup.instances; at++) subjects.push(await startInstance(network, postgres, setup, at));
    const paid: Spent<Measure>[] = [];
    const claimed: Spent<Claimed>[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      paid.push(await spending(subjects, postgres, () => buy(network, subjects)));
      claimed.push(await spending(subjects, postgres, () => claim(subjects)));
    }
    const of = <T>(all: readonly T[], pick: (one: T) => number, digits = 0) => median(all.map(pick)).toFixed(digits);
    return [
      setup.name.padEnd(14),
      of(paid, ({ result }) => result.perSecond, 1).padStart(7),
      of(paid, ({ result }) => result.p50).padStart(5),
      of(paid, ({ result }) => result.p99).padStart(5),
      of(paid, (one) => one.instancesMs / (one.result.perSecond * SECONDS), 2).padStart(14),
      of(paid, (one) => one.postgresMs / (one.result.perSecond * SECONDS), 2).padStart(9),
      '|',
      of(claimed, ({ result }) => result.perSecond).padStart(9),
      of(claimed, ({ result }) => result.p99).padStart(5),
      of(claimed, (one) => one.instancesMs / CLAIMS, 2).padStart(14),
      of(claimed, (one) => one.postgresMs / CLAIMS, 2).padStart(9),
    ].join(' ');
  } finally {
    await Promise.all(subjects.map(({ stop }) => stop()));
  }
}

async function startInstance(network: EmbeddedNetwork, postgres: Postgres, { name, database }: Setup, at: number) {
  const port = await freePort();
  return startService(port, '/readyz', {
    ...embeddedEnvironment(network),
    RELAYER_DAILY_GAS_USDC: 'off',
    DATA_DIR: join(network.dataDir, `${name.replace(' ', '-')}-${at}`),
    ...(database && { LEDGER_URL: postgres.url(database) }),
    PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
    LOG_LEVEL: 'error',
    PAYER_MAX_OPEN: '0',
    COLLECTOR: 'off',
    FACILITATOR_PER_MINUTE: '100000000',
    FACILITATOR_DAILY_CAP: '100000000',
  });
}

async function buy(network: EmbeddedNetwork, subjects: readonly Subject[]): Promise<Measure> {
  const urls = subjects.map(({ origin }) => `${origin}/v1/paid/fees/estimate`);
  const challenge = await readChallenge(urls[0] as string);
  const relayer = addressOf(Buffer.from(network.relayer.privateKey.slice(2), 'hex'));
  return measurePaid(network, { name: 'percall', urls, relayer, challenge }, BUYERS);
}

interface Claimed {
  readonly perSecond: number;
  readonly p99: number;
}

/** Divides the connections and the claims equally between the instances. */
async function claim(subjects: readonly Subject[]): Promise<Claimed> {
  const shares = await Promise.all(
    subjects.map(async ({ origin }) => ({
      clients: await openClients(origin, CONNECTIONS / subjects.length),
      requests: settleRequests(origin, CLAIMS / subjects.length),
    })),
  );
  const settled = await Promise.all(shares.map(({ clients, requests }) => settleAll(clients, requests)));
  for (const client of shares.flatMap(({ clients }) => clients)) client.close();
  const tookMs = Math.max(...settled.map((share) => share.tookMs));
  const times = settled.flatMap((share) => share.times);
  return { perSecond: (CLAIMS / tookMs) * 1000, p99: percentile(times, 0.99) };
}

interface Spent<T> {
  readonly result: T;
  readonly instancesMs: number;
  readonly postgresMs: number;
}

/** Measures the processor time that a task takes, by process. */
async function spending<T>(
  subjects: readonly Subject[],
  postgres: Postgres,
  work: () => Promise<T>,
): Promise<Spent<T>> {
  const read = () => ({
    instances: subjects.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0),
    // The child processes serve connections, which stay open.
    postgres: [postgres.pid(), ...childrenOf(postgres.pid())].reduce((sum, pid) => sum + cpuMsOf(pid), 0),
  });
  const before = read();
  const result = await work();
  const after = read();
  return { result, instancesMs: after.instances - before.instances, postgresMs: after.postgres - before.postgres };
}
