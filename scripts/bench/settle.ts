import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../dev/child.ts';
import { checkProof } from '../../src/payment/lightning/proof.ts';
import { lightningProof } from '../lib/lightning/lightning-proofs.ts';
import { openClients, settleAll, settleRequests } from './claims.ts';
import { median, percentile, startSubject } from './lib.ts';

const CONNECTIONS = 64;
const ROUNDS = 3;
const CLAIMS = 10_000;
/** Round 0 warms up. */
const WARM_UP = 4000;
const GOAL = { perSecond: 3000, p99Ms: 50 };
const NO_LIMITS = { FACILITATOR_PER_MINUTE: '0', FACILITATOR_DAILY_CAP: '100000000' };

/** Measures durable settlements a second of one facilitator process over HTTP. Every invoice is signed before the measurement starts. */
export async function benchSettle(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'percall-settle-'));
  const file = join(import.meta.dirname, 'servers/facilitator.ts');
  const env = { ...NO_LIMITS, LEDGER_FILE: join(folder, 'ledger.db'), LOG_LEVEL: 'warn' };
  const subject = await startSubject(file, await freePort(), '/facilitator/supported', env);
  const clients = await openClients(subject.origin, CONNECTIONS);
  const rates: number[] = [];
  const latencies: number[] = [];
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      const requests = settleRequests(subject.origin, round === 0 ? WARM_UP : CLAIMS);
      const before = await spentBy(subject.origin);
      const { tookMs, times } = await settleAll(clients, requests);
      if (round === 0) continue;
      const rate = (requests.length / tookMs) * 1000;
      rates.push(rate);
      latencies.push(...times);
      const after = await spentBy(subject.origin);
      const group = (after.claims - before.claims) / (after.commits - before.commits);
      const cpu = (after.cpuMicroseconds - before.cpuMicroseconds) / requests.length;
      console.log(
        `round ${round}: ${rate.toFixed(0)} settles/s, ${group.toFixed(1)} claims a commit, ${cpu.toFixed(0)} µs of processor time each`,
      );
    }
  } finally {
    for (const client of clients) client.close();
    await subject.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  report(median(rates), latencies);
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
