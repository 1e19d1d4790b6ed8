import { join } from 'node:path';
import { freePort } from '../../dev/child.ts';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { type Postgres, startPostgres } from '../lib/ledger/postgres.ts';
import { type Checkout, inTurns, ratio, readComparison, startCheckout } from './checkouts.ts';
import { openClients, settleAll, settleRequests } from './claims.ts';
import { cpuMsOf, cpuMsOfAll, median, percentile, type Subject } from './lib.ts';
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

/**
 * Measures paid calls and Lightning claims a second for each ledger. Everything runs on this machine, so all parts
 * share its processor time. With `--before FOLDER`: beside the service of another checkout, in alternating rounds.
 * With `--ledger`: only the setups of that database.
 */
export async function benchLedger(options: readonly string[] = []): Promise<void> {
  const { checkouts, postgres: given } = await readComparison('ledger', options);
  const network = await startEmbeddedNetwork();
  const postgres = given ?? (await startPostgres());
  const only = options.includes('--ledger');
  console.log(
    `medians of ${ROUNDS} rounds: ${BUYERS} buyers for ${SECONDS} s, ${CLAIMS} claims over ${CONNECTIONS} connections; CPU in ms a call`,
  );
  console.log(
    'ledger                paid/s   p50   p99  CPU instances  postgres |  claims/s   p99  CPU instances  postgres',
  );
  try {
    for (const setup of SETUPS) {
      if (only && (setup.database === null) === (given !== null)) continue;
      await measureSetup(network, postgres, setup, checkouts);
    }
  } finally {
    await postgres.stop();
    await network.stop();
  }
}

/** One checkout's instances over one ledger, and their rounds. */
interface Side {
  readonly name: string;
  readonly relayer: ReturnType<typeof createAccount>;
  readonly subjects: Subject[];
  readonly paid: Spent<Measure>[];
  readonly claimed: Spent<Claimed>[];
}

async function measureSetup(
  network: EmbeddedNetwork,
  postgres: Postgres,
  setup: Setup,
  checkouts: readonly Checkout[],
): Promise<void> {
  const sides = checkouts.map(
    ({ name }): Side => ({ name, relayer: createAccount(), subjects: [], paid: [], claimed: [] }),
  );
  try {
    for (const [at, checkout] of checkouts.entries()) {
      if (setup.database) await postgres.createDatabase(`${setup.database}_${checkout.name}`);
      const { relayer, subjects } = sides[at] as Side;
      await network.fundNative(relayer.address, 10n ** 21n);
      for (let instance = 0; instance < setup.instances; instance++)
        subjects.push(await startInstance(network, postgres, setup, checkout, relayer.privateKey, instance));
    }
    for (let round = 0; round < ROUNDS; round++) {
      await inTurns(sides, round, async ({ subjects, paid, relayer }) => {
        paid.push(await spending(subjects, postgres, () => buy(network, subjects, relayer.address)));
      });
      await inTurns(sides, round, async ({ subjects, claimed }) => {
        claimed.push(await spending(subjects, postgres, () => claim(subjects)));
      });
    }
    for (const side of sides) console.log(rowOf(sides.length > 1 ? `${setup.name} ${side.name}` : setup.name, side));
    const [before, after] = sides;
    if (before && after) console.log(ratiosOf(before, after));
  } finally {
    await Promise.all(sides.flatMap(({ subjects }) => subjects.map(({ stop }) => stop())));
  }
}

const paidCpu = ({ instancesMs, result }: Spent<Measure>) => instancesMs / (result.perSecond * SECONDS);
const paidDatabase = ({ postgresMs, result }: Spent<Measure>) => postgresMs / (result.perSecond * SECONDS);

function rowOf(name: string, { paid, claimed }: Side): string {
  const of = <T>(all: readonly T[], pick: (one: T) => number, digits = 0) => median(all.map(pick)).toFixed(digits);
  return [
    name.padEnd(21),
    of(paid, ({ result }) => result.perSecond, 1).padStart(7),
    of(paid, ({ result }) => result.p50).padStart(5),
    of(paid, ({ result }) => result.p99).padStart(5),
    of(paid, paidCpu, 2).padStart(14),
    of(paid, paidDatabase, 2).padStart(9),
    '|',
    of(claimed, ({ result }) => result.perSecond).padStart(9),
    of(claimed, ({ result }) => result.p99).padStart(5),
    of(claimed, (one) => one.instancesMs / CLAIMS, 2).padStart(14),
    of(claimed, (one) => one.postgresMs / CLAIMS, 2).padStart(9),
  ].join(' ');
}

function ratiosOf(before: Side, after: Side): string {
  const paid = (pick: (one: Spent<Measure>) => number) => ratio(before.paid.map(pick), after.paid.map(pick));
  const claimed = (pick: (one: Spent<Claimed>) => number) => ratio(before.claimed.map(pick), after.claimed.map(pick));
  const [rate, cpu, database] = [paid(({ result }) => result.perSecond), paid(paidCpu), paid(paidDatabase)];
  const claims = [
    claimed(({ result }) => result.perSecond),
    claimed((one) => one.instancesMs),
    claimed((one) => one.postgresMs),
  ];
  return `  after / before: paid ${rate} calls/s, ${cpu} CPU, ${database} postgres; claims ${claims[0]} a second, ${claims[1]} CPU, ${claims[2]} postgres`;
}

function startInstance(
  network: EmbeddedNetwork,
  postgres: Postgres,
  { name, database }: Setup,
  checkout: Checkout,
  relayerKey: string,
  at: number,
): Promise<Subject> {
  return freePort().then((port) =>
    startCheckout(checkout.folder, port, '/readyz', {
      ...embeddedEnvironment(network),
      RELAYER_PRIVATE_KEY: relayerKey,
      RELAYER_DAILY_GAS_USDC: 'off',
      DATA_DIR: join(network.dataDir, `${name.replace(' ', '-')}-${checkout.name}-${at}`),
      ...(database && { LEDGER_URL: postgres.url(`${database}_${checkout.name}`) }),
      PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
      LOG_LEVEL: 'error',
      PAYER_MAX_OPEN: '0',
      COLLECTOR: 'off',
      FACILITATOR_PER_MINUTE: '100000000',
      FACILITATOR_DAILY_CAP: '100000000',
    }),
  );
}

async function buy(network: EmbeddedNetwork, subjects: readonly Subject[], relayer: string): Promise<Measure> {
  const urls = subjects.map(({ origin }) => `${origin}/v1/paid/fees/estimate`);
  const challenge = await readChallenge(urls[0] as string);
  return measurePaid(network, { name: 'percall', urls, relayer: relayer.toLowerCase(), challenge }, BUYERS);
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
    postgres: cpuMsOfAll(postgres.pid()),
  });
  const before = read();
  const result = await work();
  const after = read();
  return { result, instancesMs: after.instances - before.instances, postgresMs: after.postgres - before.postgres };
}
