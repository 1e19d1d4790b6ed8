import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { createSettledToday, type RailSum } from '../../../src/payment/history.ts';
import { waysIn } from '../../../src/wiring/rails.ts';
import { openMemoryLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { reservation } from '../../support/ledger/ledger-rows.ts';
import { accountedOf, grantOf } from '../../support/lightning/lightning-rows.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { seed, seededRandom } from '../../support/random.ts';

const MIDNIGHT = Date.UTC(2026, 10, 21);
const USDC = `0x${'36'.repeat(20)}` as const;
const GATEWAY = Buffer.alloc(20, 0x77);
const CHANNELS = Buffer.from('4020074e9df2ce1dee5a9c1b5c3f541d02a10003', 'hex');
const { SELLER_ADDRESS, RELAYER_PRIVATE_KEY } = {
  SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
  RELAYER_PRIVATE_KEY: `0x${'11'.repeat(32)}`,
};
const wayIn = waysIn(loadConfig({ NETWORK: 'arc', USDC_ADDRESS: USDC, SELLER_ADDRESS, RELAYER_PRIVATE_KEY }));
const settledOn = (contract: Uint8Array | null) => (contract ? wayIn(contract) : 'lightning');
const ALWAYS = ['usdc', 'lightning'] as const;

function open(startMs: number) {
  const db = openMemoryLedger();
  const ledger = storesOf(db).payments;
  const claims = storesOf(db).lightning;
  const clock = createManualClock(startMs);
  const reads = storesOf(db).settled;
  let number = 0;
  return {
    clock,
    reads,
    today: createSettledToday(reads, settledOn, clock, ALWAYS),
    /** A payment that settles at this moment. */
    async pay(amount: bigint, contract?: Buffer, state: 'settled' | 'failed' | 'unknown' = 'settled') {
      number += 1;
      const id = `p${number}`;
      await ledger.reserve(reservation(id, id, { amount, ...(contract && { contract }) }), 0, null);
      await ledger.move(id, ['reserved'], 'settling', {});
      await ledger.move(id, ['settling'], state, state === 'unknown' ? {} : { endedAt: clock.nowMs() });
    },
    async claim(amountMsat: bigint, isOurs = true) {
      number += 1;
      const name = `c${number}`;
      const more = { amountMsat, claimedAt: clock.nowMs() };
      await claims.claim(isOurs ? grantOf(name, more) : accountedOf(name, {}, more));
    },
  };
}

const byRail = (sums: readonly RailSum[]) => Object.fromEntries(sums.map(({ rail, ...sum }) => [rail, sum]));

describe('what settled today', () => {
  test('is counted by rail, the Gateway’s and the channels’ apart, from midnight UTC on', async () => {
    const { clock, today, pay, claim } = open(MIDNIGHT - 1);
    await pay(900n);
    await claim(9000n);
    await clock.advance(1);
    expect(byRail(await today())).toEqual({ usdc: { count: 0, amount: 0n }, lightning: { count: 0, amount: 0n } });
    await pay(500n);
    await pay(2000n);
    await pay(3000n, GATEWAY);
    await pay(700n, CHANNELS);
    await claim(21_000n);
    expect(byRail(await today())).toEqual({
      usdc: { count: 2, amount: 2500n },
      gateway: { count: 1, amount: 3000n },
      channels: { count: 1, amount: 700n },
      lightning: { count: 1, amount: 21_000n },
    });
  });

  test('is listed by rail only where something settled, unless a rail is always listed', async () => {
    const { reads, clock, pay } = open(MIDNIGHT + 1000);
    const today = createSettledToday(reads, settledOn, clock);
    // The ledger's sum of claims has a row without any claim.
    const lightning = { count: 0, amount: 0n };
    expect(byRail(await today())).toEqual({ lightning });
    await pay(3000n, GATEWAY);
    expect(byRail(await today())).toEqual({ lightning, gateway: { count: 1, amount: 3000n } });
  });

  test('leaves out failed and unknown payments, and those to other sellers', async () => {
    const { today, pay, claim } = open(MIDNIGHT + 1000);
    await pay(500n, undefined, 'failed');
    await pay(500n, undefined, 'unknown');
    await claim(21_000n, false);
    expect(byRail(await today())).toEqual({ usdc: { count: 0, amount: 0n }, lightning: { count: 0, amount: 0n } });
  });

  test(`always equals the ledger’s sums of the day, however often it was asked before (seed ${seed})`, async () => {
    const random = seededRandom('settled today');
    const { clock, today, pay, claim, reads } = open(MIDNIGHT);
    for (let step = 0; step < 120; step += 1) {
      await clock.advance(Math.floor(random() * 20 * 60_000));
      if (random() < 0.7) await pay(BigInt(1 + Math.floor(random() * 5000)), random() < 0.3 ? GATEWAY : undefined);
      else await claim(BigInt(1000 * Math.ceil(random() * 50)));
      if (random() < 0.5) continue;
      const dayStart = Math.floor(clock.nowMs() / 86_400_000) * 86_400_000;
      const held = await reads.settledBetween(dayStart, clock.nowMs() + 1);
      const shown = await today();
      const total = (sums: readonly { count: number; amount: bigint }[]) => [
        sums.reduce((sum, { count }) => sum + count, 0),
        sums.reduce((sum, { amount }) => sum + amount, 0n),
      ];
      for (const rail of ['usdc', 'lightning']) {
        const isOf = (sum: { rail: string }) => (sum.rail === 'lightning') === (rail === 'lightning');
        expect(total(shown.filter(isOf))).toEqual(total(held.filter(isOf)));
      }
    }
    expect(clock.nowMs()).toBeGreaterThan(MIDNIGHT + 86_400_000 / 2);
  });

  test('reads only the last minute again', async () => {
    const { clock, reads, pay } = open(MIDNIGHT + 3_600_000);
    const spans: number[] = [];
    const source = {
      settledBetween: (from: number, to: number) => {
        spans.push(Math.min(to, clock.nowMs()) - from);
        return reads.settledBetween(from, to);
      },
    };
    const today = createSettledToday(source, settledOn, clock, ALWAYS);
    await pay(500n);
    await today();
    await clock.advance(5000);
    spans.length = 0;
    expect(byRail(await today()).usdc).toEqual({ count: 1, amount: 500n });
    expect(Math.max(...spans)).toBeLessThanOrEqual(60_000);
  });

  test('reads a day that nobody has asked about by the hour, so that no sale waits for all of it', async () => {
    const { clock, reads, pay } = open(MIDNIGHT);
    const spans: number[] = [];
    const settledBetween = (from: number, to: number) => {
      spans.push(to - from);
      return reads.settledBetween(from, to);
    };
    const today = createSettledToday({ settledBetween }, settledOn, clock, ALWAYS);
    await pay(500n);
    await clock.advance(20 * 3_600_000);
    await pay(500n);
    expect(byRail(await today()).usdc).toEqual({ count: 2, amount: 1000n });
    expect(spans).toHaveLength(21);
    expect(Math.max(...spans)).toBe(3_600_000);
  });

  test('rejects when the ledger does not answer, and is right again afterwards', async () => {
    const { clock, reads, pay } = open(MIDNIGHT + 3_600_000);
    let isDown = true;
    const settledBetween = (from: number, to: number) =>
      isDown ? Promise.reject(new Error('closed')) : reads.settledBetween(from, to);
    const today = createSettledToday({ settledBetween }, settledOn, clock, ALWAYS);
    await pay(500n);
    await expect(today()).rejects.toThrow('closed');
    isDown = false;
    expect(byRail(await today()).usdc).toEqual({ count: 1, amount: 500n });
  });
});
