import { describe, expect, test } from 'vitest';
import { createRemoteQueue } from '../../../src/payment/usdc/facilitator-queue.ts';
import type { Intent, Outcome } from '../../../src/payment/usdc/settler.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const silent = { warn: () => {} };
const authorization = {
  ...{ from: Buffer.alloc(20, 1), to: Buffer.alloc(20, 2), nonce: Buffer.alloc(32, 3), signature: Buffer.alloc(65, 4) },
  ...{ value: 1000n, validAfter: 0n, validBefore: 1n },
};

describe('the queue of a remote settler', () => {
  const intent = (id: string): Intent => ({ id, authorization, fromBlock: 0, broadcast: false });
  const unknown: Outcome = { kind: 'unknown' };

  test('asks again for the same payment after pauses that double', async () => {
    const clock = createManualClock(0);
    const times: number[] = [];
    const attempt = async () => {
      times.push(clock.nowMs());
      return { outcome: unknown, clear: false };
    };
    const queue = createRemoteQueue({ attempt, clock, stallMs: 1e9, log: silent });
    for (let second = 0; second < 20; second++) {
      expect(await Promise.all(queue.settle([intent('same')]))).toEqual([unknown]);
      await clock.advance(1000);
    }
    expect(times).toEqual([0, 1000, 3000, 7000, 15_000]);
  });

  test('stops the sale for a while when nothing clear comes back, and forgets that at a clear answer', async () => {
    const clock = createManualClock(0);
    let clear = false;
    const queue = createRemoteQueue({
      attempt: async () => ({ outcome: unknown, clear }),
      clock,
      stallMs: 1e9,
      log: silent,
    });
    await Promise.all(queue.settle([intent('a'), intent('b')]));
    expect(queue.unavailable()).toBeNull();
    await Promise.all(queue.settle([intent('c')]));
    expect(queue.unavailable()).toMatch(/no clear answers/);
    await clock.advance(6000);
    expect(queue.unavailable()).toBeNull();
    clear = true;
    await Promise.all(queue.settle([intent('d')]));
    clear = false;
    await Promise.all(queue.settle([intent('e'), intent('f')]));
    expect(queue.unavailable()).toBeNull();
  });

  test('says when settlements are late, and ends what is under way as unknown', async () => {
    const clock = createManualClock(0);
    const queue = createRemoteQueue({
      attempt: (_, { inTurn }) => inTurn(() => new Promise<never>(() => {})),
      clock,
      stallMs: 1000,
      log: silent,
    });
    const [outcome] = queue.settle([intent('a')]);
    expect(queue.unavailable()).toBeNull();
    await clock.advance(1001);
    expect(queue.unavailable()).toMatch(/late/);
    await queue.stop();
    expect(await outcome).toEqual(unknown);
    expect(queue.unavailable()).toMatch(/stopping/);
    expect(await Promise.all(queue.settle([intent('b')]))).toEqual([unknown]);
  });
});
