import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../dev/child.ts';
import { checkProof } from '../../src/payment/lightning/proof.ts';
import { lightningProof } from '../lib/lightning/lightning-proofs.ts';
import { inTurns, ratio, readComparison } from './checkouts.ts';
import { openClients, settleAll, settleRequests } from './claims.ts';
import { cpuMsOfAll, median, percentile, type Subject, startSubject } from './lib.ts';

const CONNECTIONS = 64;
const ROUNDS = 3;
const CLAIMS = 10_000;
/** Round 0 warms up. */
const WARM_UP = 4000;
const GOAL = { perSecond: 3000, p99Ms: 50 };
const NO_LIMITS = { FACILITATOR_PER_MINUTE: '0', FACILITATOR_DAILY_CAP: '100000000' };

interface Side {
  readonly name: string;
  readonly server: Subject;
  readonly clients: Awaited<ReturnType<typeof openClients>>;
  /** Of each round: settlements a second, microseconds of processor time of the server and of PostgreSQL for each. */
  readonly rates: number[];
  readonly cpu: number[];
  readonly database: number[];
  readonly latencies: number[];
}

/**
 * Measures durable settlements a second of one facilitator process over HTTP. Every invoice is signed before the
 * measurement starts. With `--before FOLDER`: beside the server of the same file in another checkout. With
 * `--ledger postgres` each has a database in place of a SQLite file.
 */
export async function benchSettle(options: readonly string[] = []): Promise<void> {
  const { checkouts, postgres } = await readComparison('settle', options);
  const folder = mkdtempSync(join(tmpdir(), 'percall-settle-'));
  const sides: Side[] = [];
  try {
    for (const { name, folder: checkout } of checkouts) {
      const file = join(checkout, 'scripts/bench/servers/facilitator.ts');
      await postgres?.createDatabase(name);
      const ledger = { LEDGER_FILE: join(folder, `${name}.db`), ...(postgres && { LEDGER_URL: postgres.url(name) }) };
      const env = { ...NO_LIMITS, ...ledger, LOG_LEVEL: 'warn' };
      const server = await startSubject(file, await freePort(), '/facilitator/supported', env);
      const clients = await openClients(server.origin, CONNECTIONS);
      sides.push({ name, server, clients, rates: [], cpu: [], database: [], latencies: [] });
    }
    const databaseMs = () => (postgres ? cpuMsOfAll(postgres.pid()) : 0);
    for (let round = 0; round <= ROUNDS; round++) {
      await inTurns(sides, round, (side) => measureRound(side, round, databaseMs));
    }
  } finally {
    for (const { clients, server } of sides) {
      for (const client of clients) client.close();
      await server.stop();
    }
    rmSync(folder, { recursive: true, force: true });
    await postgres?.stop();
  }
  const [one, other] = sides;
  if (one && other) reportRatios(one, other);
  else if (one) report(median(one.rates), one.latencies);
}

/** Round 0 warms up. */
async function measureRound(side: Side, round: number, databaseMs: () => number): Promise<void> {
  const { name, server, clients, rates, cpu, database, latencies } = side;
  const requests = settleRequests(server.origin, round === 0 ? WARM_UP : CLAIMS);
  const [before, databaseBefore] = [await spentBy(server.origin), databaseMs()];
  const { tookMs, times } = await settleAll(clients, requests);
  if (round === 0) return;
  const [after, databaseAfter] = [await spentBy(server.origin), databaseMs()];
  const rate = (requests.length / tookMs) * 1000;
  const group = (after.claims - before.claims) / (after.commits - before.commits);
  rates.push(rate);
  latencies.push(...times);
  cpu.push((after.cpuMicroseconds - before.cpuMicroseconds) / requests.length);
  database.push(((databaseAfter - databaseBefore) / requests.length) * 1000);
  console.log(
    `${name}, round ${round}: ${rate.toFixed(0)} settles/s, ${group.toFixed(1)} claims a commit, ${cpu.at(-1)?.toFixed(0)} µs of processor time each, ${database.at(-1)?.toFixed(0)} µs of the database`,
  );
}

function reportRatios(before: Side, after: Side): void {
  const of = (key: 'rates' | 'cpu' | 'database') => ratio(before[key], after[key]);
  console.log(
    `after / before, medians of ${ROUNDS} rounds: ${of('rates')} settles/s, ${of('cpu')} CPU each, ${of('database')} of the database`,
  );
}

async function spentBy(origin: string) {
  const answer = await fetch(`${origin}/spent`);
  return (await answer.json()) as { claims: number; commits: number; cpuMicroseconds: number };
}

/** The microseconds that checking one proof takes. */
function checkMicroseconds(): number {
  const now = Math.floor(Date.now() / 1000);
  const proofs = Array.from({ length: 2000 }, () => lightningProof({ createdAt: now }));
  const once = () => {
    const started = performance.now();
    for (const { body } of proofs) checkProof(body.paymentPayload, body.paymentRequirements, { now });
    return ((performance.now() - started) / proofs.length) * 1000;
  };
  once();
  return median([once(), once(), once()]);
}

function report(rate: number, latencies: readonly number[]): void {
  const p99 = percentile(latencies, 0.99);
  const check = checkMicroseconds();
  const share = ((rate * check) / 10_000).toFixed(0);
  console.log(
    `${rate.toFixed(0)} durable settles/s (goal ${GOAL.perSecond}), median of ${ROUNDS} rounds of ${CLAIMS}, ${CONNECTIONS} connections`,
  );
  console.log(
    `p50 ${percentile(latencies, 0.5).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms (goal below ${GOAL.p99Ms} ms)`,
  );
  console.log(`the checks of a proof take ${check.toFixed(0)} µs: ${share} % of the process's time at that rate`);
  if (rate < GOAL.perSecond || p99 >= GOAL.p99Ms) throw new Error('below the goal');
}
