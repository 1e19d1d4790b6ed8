import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { addressOf } from '../../src/lib/secp256k1.ts';
import { freePort } from '../embedded/free-port.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../embedded/network.ts';
import { embeddedEnvironment } from '../embedded/serve.ts';
import { lightningProof } from '../lib/lightning-proofs.ts';
import { type Postgres, startPostgres } from '../lib/postgres.ts';
import { openRawClient, postOf } from '../lib/raw-client.ts';
import { median, percentile, type Subject, startSubject } from './lib.ts';
import { type Measure, measurePaid, SECONDS } from './paid-load.ts';
import { readChallenge } from './payments.ts';

const BUYERS = 64;
const ROUNDS = 2;
const CONNECTIONS = 64;
const CLAIMS = 6000;
const TICKS_PER_SECOND = 100;

/** Where the ledger is, and how many instances share it. */
const SETUPS = [
  { name: 'SQLite', instances: 1, database: null },
  { name: 'PostgreSQL x1', instances: 1, database: 'one' },
  { name: 'PostgreSQL x2', instances: 2, database: 'two' },
  { name: 'PostgreSQL x4', instances: 4, database: 'four' },
] as const;
type Setup = (typeof SETUPS)[number];

/** Paid calls and Lightning claims a second by ledger, all of it on this machine: what a row takes from the others is processor time. */
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
  return startSubject('src/server.ts', port, '/readyz', {
    ...embeddedEnvironment(network),
    DATA_DIR: join(network.dataDir, `${name.replace(' ', '-')}-${at}`),
    ...(database && { LEDGER_URL: postgres.url(database) }),
    ...{ PUBLIC_ORIGIN: `http://127.0.0.1:${port}`, LOG_LEVEL: 'error', PAYER_MAX_OPEN: '0', COLLECTOR: 'off' },
    ...{ FACILITATOR_PER_MINUTE: '0', FACILITATOR_DAILY_CAP: '100000000' },
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

async function claim(subjects: readonly Subject[]): Promise<Claimed> {
  const createdAt = Math.floor(Date.now() / 1000);
  const bodies = Array.from({ length: CLAIMS }, () =>
    JSON.stringify(lightningProof({ createdAt, maxTimeoutSeconds: 3600 }).body),
  );
  const times: number[] = [];
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, connection) => {
      const { origin } = subjects[connection % subjects.length] as Subject;
      const client = await openRawClient(origin);
      for (let body = bodies[next++]; body; body = bodies[next++]) {
        const sent = performance.now();
        const answer = await client.send(postOf(origin, '/facilitator/settle', body));
        times.push(performance.now() - sent);
        if (!answer.startsWith('{"success":true')) throw new Error(`not claimed: ${answer}`);
      }
      client.close();
    }),
  );
  return { perSecond: (CLAIMS / (performance.now() - started)) * 1000, p99: percentile(times, 0.99) };
}

interface Spent<T> {
  readonly result: T;
  readonly instancesMs: number;
  readonly postgresMs: number;
}

/** What a piece of work takes of the processors, by who takes it. */
async function spending<T>(
  subjects: readonly Subject[],
  postgres: Postgres,
  work: () => Promise<T>,
): Promise<Spent<T>> {
  const read = () => ({
    instances: subjects.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0),
    // Its children are connections, which stay.
    postgres: [postgres.pid(), ...childrenOf(postgres.pid())].reduce((sum, pid) => sum + cpuMsOf(pid), 0),
  });
  const before = read();
  const result = await work();
  const after = read();
  return { result, instancesMs: after.instances - before.instances, postgresMs: after.postgres - before.postgres };
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}

/** User and system time of a process, from Linux's own account. */
function cpuMsOf(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
  } catch {
    return 0;
  }
}
