import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, type SuiteOptions, test } from 'vitest';
import { createFacilitatorProcess } from '../support/lightning/facilitator-process.ts';
import { formsOf, proofNow, settleOver } from '../support/lightning/settle-calls.ts';
import { call } from '../support/service/service.ts';

const ROUNDS = process.env.SLOW ? 20 : 2;
const PROOFS = process.env.SLOW ? 300 : 80;
/** All claims are for one payee, which may have a twentieth of the day's cap: so many are left for the last test. */
const LEFT = 20;
const CAP = 20 * (ROUNDS + PROOFS + LEFT);
/** The last test uses up what the others leave of the cap. */
const ONE_DAY: SuiteOptions = { shuffle: false };
/** In ms: a day, and more than all tests take. They need one day in UTC, whose count and cap end at midnight. */
const [DAY_MS, TESTS_MS] = [86_400_000, 120_000];

type Process = Awaited<ReturnType<typeof createFacilitatorProcess>>;

let folder: string;
let pair: readonly Process[];

/** Two processes over one ledger, which the first creates. */
beforeAll(async () => {
  const leftMs = DAY_MS - (Date.now() % DAY_MS);
  if (leftMs < TESTS_MS) await delay(leftMs);
  folder = mkdtempSync(join(tmpdir(), 'percall-two-'));
  const file = join(folder, 'ledger.db');
  const env = { FACILITATOR_DAILY_CAP: String(CAP) };
  pair = [await createFacilitatorProcess(file, env), await createFacilitatorProcess(file, env)];
  for (const one of pair) await one.start();
});
afterAll(async () => {
  await Promise.all(pair.map((one) => one.kill()));
  rmSync(folder, { recursive: true, force: true });
});

const overBoth = async (proofs: readonly ReturnType<typeof proofNow>[]) =>
  (await Promise.all(pair.map(({ origin }) => settleOver(origin, proofs, 64)))).flat();
const figuresOf = async ({ origin }: Process) => {
  await new Promise((older) => setTimeout(older, 1000));
  return JSON.parse((await call(origin, '/facilitator')).body);
};

describe('two processes with a daily cap', ONE_DAY, () => {
  test('of 128 simultaneous calls with one proof, through two processes on one ledger, exactly one claims it', async () => {
    const before = (await figuresOf(pair[0] as Process)).settled;
    for (let round = 0; round < ROUNDS; round++) {
      const ends = await overBoth(Array(64).fill(proofNow()));
      expect(ends.filter((end) => end === 'success')).toHaveLength(1);
      expect(ends.filter((end) => end === 'duplicate_settlement')).toHaveLength(127);
    }
    for (const one of pair)
      expect(await figuresOf(one)).toMatchObject({
        settled: { total: before.total + ROUNDS, today: before.today + ROUNDS, nodes: 1 },
      });
  });

  test('when both processes get the same proofs, one of them claims each, and no preimage is stored or logged', async () => {
    const proofs = Array.from({ length: PROOFS }, proofNow);
    const ends = await overBoth(proofs);
    proofs.forEach((_, at) => {
      expect([ends[at], ends[at + proofs.length]].sort()).toEqual(['duplicate_settlement', 'success']);
    });
    const files = readdirSync(folder);
    expect(files.sort()).toEqual(['ledger.db', 'ledger.db-shm', 'ledger.db-wal']);
    const kept = Buffer.concat(files.map((name) => readFileSync(join(folder, name))));
    const bytes = Buffer.concat([kept, Buffer.from(pair.map((one) => one.log()).join('\n'))]);
    // Shows that the search works: it finds payment hashes. The logs name every call.
    for (const { paymentHash } of proofs) expect(kept.includes(Buffer.from(paymentHash, 'hex'))).toBe(true);
    expect(pair[0]?.log()).toContain('/facilitator/settle');
    for (const { preimage } of proofs) expect(formsOf(preimage).filter((form) => bytes.includes(form))).toEqual([]);
  });

  test("the day's cap holds exactly across two processes, and across restarts of both", async () => {
    const ends = await overBoth(Array.from({ length: 100 }, proofNow));
    const others = ends.filter((end) => end !== 'success');
    expect(ends.filter((end) => end === 'success')).toHaveLength(LEFT);
    expect(new Set(others)).toEqual(new Set(['daily_cap_reached', 'duplicate_settlement']));
    for (const one of pair) {
      await one.kill();
      await one.start();
      expect(await settleOver(one.origin, [proofNow()], 1)).toEqual(['daily_cap_reached']);
      expect(await figuresOf(one)).toMatchObject({ limits: { dailyCap: CAP, settledToday: CAP / 20 } });
    }
  });
});
