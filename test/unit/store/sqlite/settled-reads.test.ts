import { expect, test } from 'vitest';
import { openMemoryLedger, storesOf } from '../../../support/ledger/fresh-ledger.ts';
import { reservation } from '../../../support/ledger/ledger-rows.ts';
import { grantOf } from '../../../support/lightning/lightning-rows.ts';

const AT = 1_800_000_000_000;

test('the beginning of a span counts, its end does not', async () => {
  const db = openMemoryLedger();
  const ledger = storesOf(db).payments;
  for (const at of [AT - 1, AT, AT + 9, AT + 10]) {
    const id = `p${at}`;
    await ledger.reserve(reservation(id, id), 0, null);
    await ledger.move(id, ['reserved'], 'settling', {});
    await ledger.move(id, ['settling'], 'settled', { endedAt: at });
  }
  const contract = Buffer.alloc(20, 0x36);
  expect(await storesOf(db).settled.settledBetween(AT, AT + 10)).toEqual([
    { rail: 'usdc', contract, count: 2, amount: 1000n },
    { rail: 'lightning', contract: null, count: 0, amount: 0n },
  ]);
});

test('sums are exact beyond what a float holds', async () => {
  const db = openMemoryLedger();
  const claims = storesOf(db).lightning;
  const amountMsat = 2n ** 53n + 1n;
  for (const name of ['a', 'b']) await claims.claim(grantOf(name, { amountMsat, claimedAt: AT }));
  const [sum] = await storesOf(db).settled.settledBetween(AT, AT + 1);
  expect(sum).toMatchObject({ rail: 'lightning', count: 2, amount: 2n * amountMsat });
});

test('each sum is read from an index by time, without reading the whole past', () => {
  const db = openMemoryLedger();
  const plan = (sql: string) => db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[];
  const settled = plan(
    "SELECT sum(amount) FROM usdc_payments WHERE state = 'settled' AND ended_at >= 1 AND ended_at < 2",
  );
  const claimed = plan(
    'SELECT count(*) FROM lightning_claims WHERE request_hash IS NOT NULL AND claimed_at >= 1 AND claimed_at < 2',
  );
  expect(settled[0]?.detail).toContain('usdc_payments_settled (state=? AND ended_at>? AND ended_at<?)');
  expect(claimed[0]?.detail).toContain('lightning_claims_granted (claimed_at>? AND claimed_at<?)');
});
