import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { AppError, UpstreamFailed } from '../../../../../src/errors.ts';
import { openReply, sealReply } from '../../../../../src/payment/lightning/kept-replies.ts';
import { openRailBench, type RailBench } from '../../../../support/lightning/rail-bench.ts';

let bench: RailBench;
beforeEach(async () => {
  bench = await openRailBench({ quotaBytes: 1000 });
});
afterEach(() => bench.close());

/** A paid and claimed order whose answer is still to be made. */
async function claimed(tag = 'a') {
  const order = bench.order(tag);
  const { header, key } = await bench.buy(order);
  bench.faults.takeLease = async () => false;
  await bench.redeem(order, header).catch(() => {});
  delete bench.faults.takeLease;
  const claim = await bench.real.findClaim(key);
  if (!claim) throw new Error('not claimed');
  bench.handler.runs.splice(0);
  bench.warned.splice(0);
  const serve = (holder = 'boot:1', from = order) =>
    bench.serve(from, key, claim, holder).then(
      (body) => Buffer.from(body).toString(),
      (error: unknown) => (error instanceof AppError ? `${error.status} ${error.code}` : error),
    );
  return { order, key, claim, serve, header };
}

describe('a granted claim', () => {
  test('is answered by a fresh run, which is kept sealed in place of the reply of the offer', async () => {
    const { order, key, serve } = await claimed();
    bench.handler.run = async () => 'fresh';
    expect(await serve()).toBe('{"text":"fresh"}');
    expect([bench.handler.runs, await bench.real.keptReply(key)]).toEqual([['a'], null]);
    const answer = await bench.real.answer(key);
    expect(answer && openReply(answer, order.binding, key.paymentHash)?.toString()).toBe('{"text":"fresh"}');
  });

  test('is answered once: the next presentation gets the same and runs nothing', async () => {
    const { key, order, serve } = await claimed();
    await serve();
    bench.handler.run = async () => 'another';
    expect(await serve('boot:2')).toBe('{"text":"answer to a"}');
    const claim = await bench.real.findClaim(key);
    bench.faults.takeLease = async () => Promise.reject(new Error('no lease is needed'));
    expect(Buffer.from(await bench.serve(order, key, claim!, 'boot:3')).toString()).toBe('{"text":"answer to a"}');
    expect(bench.handler.runs).toEqual(['a']);
  });

  test('is served by the reply of its offer when the run fails, and the failure is logged', async () => {
    const { serve, key } = await claimed();
    bench.handler.run = async () => Promise.reject(new UpstreamFailed('test', 'down'));
    expect(await serve()).toBe('{"text":"answer to a"}');
    const detail = { err: expect.objectContaining({ message: 'test: down' }), endpoint: '/test/rail' };
    expect(bench.warned).toEqual([['warn', 'a paid run failed: the kept reply is delivered', detail]]);
    expect(await bench.real.keptReply(key)).toBeNull();
    bench.handler.run = async () => 'another';
    expect(await serve()).toBe('{"text":"answer to a"}');
  });

  test('gets the reason when the run fails and no reply was kept, or none that can be opened', async () => {
    for (const damage of ['DELETE FROM lightning_kept_replies', "UPDATE lightning_kept_replies SET body = x'00'"]) {
      const { serve, key } = await claimed(damage.slice(0, 6));
      bench.sql(damage);
      bench.handler.run = async () => Promise.reject(new UpstreamFailed('test', 'down'));
      expect(await serve()).toBe('502 upstream_failed');
      expect(bench.warned).toEqual([]);
      bench.handler.run = async () => 'later';
      await bench.clock.advance(1000);
      expect(await serve()).toBe('{"text":"later"}');
      expect((await bench.real.findClaim(key))?.grant?.answered).toBe(true);
    }
  });

  test('without a kept reply is run once, however often its buyer leaves early', async () => {
    const { order, key, claim, serve } = await claimed();
    bench.sql('DELETE FROM lightning_kept_replies');
    const ends = Promise.withResolvers<string>();
    bench.handler.run = () => ends.promise;
    const leaver = new AbortController();
    const left = bench.serve({ ...order, signal: leaver.signal }, key, claim, 'boot:1').catch((error) => error.code);
    await expect.poll(() => bench.handler.runs.length).toBe(1);
    leaver.abort();
    const again = { ...order, signal: AbortSignal.abort() };
    expect(await serve('boot:2', again)).toBe('409 payment_in_flight');
    ends.resolve('made for a buyer that left');
    await left;
    bench.handler.run = async () => 'another';
    for (const holder of ['boot:3', 'boot:4'])
      expect(await serve(holder, again)).toBe('{"text":"made for a buyer that left"}');
    expect(bench.handler.runs).toEqual(['a']);
  });

  test('without a kept reply keeps the handler’s time-out, also after its buyer has left', async () => {
    const { serve, order } = await claimed();
    bench.sql('DELETE FROM lightning_kept_replies');
    bench.handler.run = () => new Promise(() => {});
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const served = serve('boot:1', { ...order, signal: AbortSignal.abort() });
      await vi.waitUntil(() => bench.handler.runs.length === 1, 60_000);
      await vi.advanceTimersByTimeAsync(5000);
      expect(await served).toBe('502 upstream_failed');
    } finally {
      vi.useRealTimers();
    }
  });

  test('whose run fails without a kept reply waits twice as long before each next run, for a minute at most', async () => {
    const { serve } = await claimed();
    bench.sql('DELETE FROM lightning_kept_replies');
    bench.handler.run = async () => Promise.reject(new UpstreamFailed('test', 'down'));
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
      expect(await serve()).toBe('502 upstream_failed');
      const runs = bench.handler.runs.length;
      expect(await serve('boot:2')).toBe('503 paid_run_failed');
      await bench.clock.advance(seconds * 1000 - 1);
      expect(await serve('boot:2'), `${seconds} s`).toBe('503 paid_run_failed');
      expect(bench.handler.runs).toHaveLength(runs);
      await bench.clock.advance(1);
    }
    bench.handler.run = async () => 'later';
    expect(await serve()).toBe('{"text":"later"}');
    expect(await serve()).toBe('{"text":"later"}');
  });

  test('is served by one presentation at a time, for the handler’s time and five seconds', async () => {
    const { serve } = await claimed();
    const ends = Promise.withResolvers<string>();
    bench.handler.run = () => ends.promise;
    const first = serve('boot:1');
    await expect.poll(() => bench.handler.runs.length).toBe(1);
    expect(await serve('boot:2')).toBe('409 payment_in_flight');
    await bench.clock.advance(9999);
    expect(await serve('boot:2')).toBe('409 payment_in_flight');
    await bench.clock.advance(1);
    bench.handler.run = async () => 'second';
    expect(await serve('boot:2')).toBe('{"text":"second"}');
    // The first one finds another's answer stored when it is done.
    ends.resolve('first');
    expect(await first).toBe('{"text":"second"}');
  });

  test('whose lease was lost to one that has not answered yet is in flight', async () => {
    const { serve, key } = await claimed();
    const ends = Promise.withResolvers<string>();
    bench.handler.run = () => ends.promise;
    const first = serve('boot:1');
    await expect.poll(() => bench.handler.runs.length).toBe(1);
    await bench.clock.advance(10_000);
    expect(await bench.real.takeLease(key, 'boot:2', bench.clock.nowMs(), bench.clock.nowMs() + 1000)).toBe(true);
    ends.resolve('first');
    expect(await first).toBe('409 payment_in_flight');
    expect(await bench.real.answer(key)).toBeNull();
  });

  test('that is answered between the ledger read and the lease is not run again', async () => {
    const { serve, key, order } = await claimed();
    const body = sealReply(Buffer.from('{"text":"theirs"}'), order.binding, key.paymentHash);
    bench.faults.takeLease = async (...lease) => {
      delete bench.faults.takeLease;
      const [, , now] = lease;
      await bench.real.takeLease(key, 'boot:2', now, now + 1000);
      await bench.real.storeAnswer(key, 'boot:2', body);
      await bench.real.releaseLease(key, 'boot:2');
      return bench.real.takeLease(...lease);
    };
    expect(await serve()).toBe('{"text":"theirs"}');
    expect(bench.handler.runs).toEqual([]);
  });

  test('gives its lease back, after a failure too', async () => {
    const { serve, key } = await claimed();
    bench.sql('DELETE FROM lightning_kept_replies');
    bench.handler.run = async () => Promise.reject(new UpstreamFailed('test', 'down'));
    await serve('boot:1');
    expect(await bench.real.takeLease(key, 'boot:2', bench.clock.nowMs(), bench.clock.nowMs() + 1)).toBe(true);
  });

  test('is served where its lease cannot be given back, and the failure is logged', async () => {
    const { serve } = await claimed();
    bench.faults.releaseLease = async () => Promise.reject(new Error('disk'));
    expect(await serve()).toBe('{"text":"answer to a"}');
    const detail = { err: expect.objectContaining({ message: 'disk' }) };
    expect(bench.warned).toEqual([['error', 'a lease was not released; it ends by itself', detail]]);
  });

  test('that is delivered is noted, with how long its answer can be fetched', async () => {
    const { serve, key } = await claimed();
    await serve();
    const now = bench.clock.nowMs();
    await bench.serve.delivered(key);
    const { grant } = (await bench.real.findClaim(key))!;
    expect(grant).toMatchObject({ state: 'delivered', deliveredAt: now, redeemUntil: now + 900_000 });
  });
});

describe('the reply quota', () => {
  const fits = (bytes: number) => {
    try {
      bench.quota.take({ client: '192.0.2.7', isBuyer: true }, bytes).release();
      return true;
    } catch {
      return false;
    }
  };

  test('counts the answer in place of the reply of its offer', async () => {
    const { serve } = await claimed();
    // The reply has fifty bytes of the thousand.
    expect([fits(450), fits(451)]).toEqual([true, false]);
    bench.handler.run = async () => 'x'.repeat(700 - 39);
    await serve();
    expect([fits(300), fits(301)]).toEqual([true, false]);
  });

  test('counts no answer that was not stored', async () => {
    const { serve } = await claimed();
    bench.faults.storeAnswer = async () => false;
    expect(await serve()).toBe('409 payment_in_flight');
    expect([fits(450), fits(451)]).toEqual([true, false]);
  });

  test('does not refuse an answer that was paid for', async () => {
    const { serve } = await claimed();
    bench.quota.set({ all: 2000, offered: 0 });
    expect(await serve()).toBe('{"text":"answer to a"}');
  });
});
