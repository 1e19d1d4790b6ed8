import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createFacilitatorProcess } from '../support/lightning/facilitator-process.ts';
import { formsOf, proofNow, settleOver } from '../support/lightning/settle-calls.ts';
import { seed, seededRandom } from '../support/random.ts';

const KILLS = process.env.SLOW ? 500 : 2;
const PROOFS = 400;
const CONNECTIONS = 32;
/** About as long as the proofs of one round take, so that kills come before, during and after them. In the first round one comes during them. */
const LONGEST_MS = 350;

let folder: string;
let facilitator: Awaited<ReturnType<typeof createFacilitatorProcess>>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'percall-claims-'));
  facilitator = await createFacilitatorProcess(join(folder, 'ledger.db'), { LOG_LEVEL: 'warn' });
  await facilitator.start();
});
afterAll(async () => {
  await facilitator.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** Reads the ledger's own file while the process runs. */
function ledger<T>(sql: string): T {
  const db = new Database(join(folder, 'ledger.db'), { readonly: true });
  try {
    return db.prepare(sql).pluck().get() as T;
  } finally {
    db.close();
  }
}

/** A connection brings its next proof after the answer to the one before. So once there is a claim more than connections, one was acknowledged. */
async function untilOneIsAcknowledged(): Promise<void> {
  const enough = () => ledger<number>('SELECT count(*) FROM lightning_claims') > CONNECTIONS;
  while (!enough()) await delay(2);
}

test(
  `${KILLS} times kill -9 during claims: no acknowledged claim is lost, and no proof is claimed twice`,
  async () => {
    const random = seededRandom('claims');
    const sum = { acknowledged: 0, claimedUnheard: 0, notClaimed: 0 };
    for (let round = 0; round < KILLS; round++) {
      const context = `seed ${seed}, round ${round} (run again with SEED=${seed})`;
      const proofs = Array.from({ length: PROOFS }, proofNow);
      const received = settleOver(facilitator.origin, proofs, CONNECTIONS);
      if (round === 0) await untilOneIsAcknowledged();
      else await delay(random() * LONGEST_MS);
      await facilitator.kill();
      const before = await received;
      expect(
        before.filter((end) => end !== 'success' && end !== 'lost'),
        context,
      ).toEqual([]);
      await facilitator.start();
      // Presents every proof again, those without an answer included.
      const after = await settleOver(facilitator.origin, proofs, CONNECTIONS);
      proofs.forEach(({ paymentHash }, at) => {
        const [first, second] = [before[at], after[at]];
        if (first === 'success') expect(second, `${context}, ${paymentHash}`).toBe('duplicate_settlement');
        else expect(['success', 'duplicate_settlement'], `${context}, ${paymentHash}`).toContain(second);
        sum[first === 'success' ? 'acknowledged' : second === 'success' ? 'notClaimed' : 'claimedUnheard']++;
      });
      expect(ledger<number>('SELECT count(*) FROM lightning_claims'), context).toBe(PROOFS * (round + 1));
      expect(ledger<number>('SELECT claims FROM lightning_facilitator_totals'), context).toBe(PROOFS * (round + 1));
      const forms = proofs.flatMap(({ preimage }) => formsOf(preimage));
      expect(
        forms.filter((form) => typeof form === 'string' && facilitator.log().includes(form)),
        context,
      ).toEqual([]);
    }
    // The kills must have interrupted claims; otherwise this test shows nothing.
    expect(sum.acknowledged).toBeGreaterThan(0);
    expect(sum.notClaimed + sum.claimedUnheard).toBeGreaterThan(0);
    expect(ledger<string>('PRAGMA integrity_check')).toBe('ok');
    process.stdout.write(`${KILLS} kills, seed ${seed}: ${JSON.stringify(sum)}\n`);
  },
  300_000 + KILLS * 60_000,
);
