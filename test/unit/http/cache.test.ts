import { describe, expect, it } from 'vitest';
import { createAnswerCache } from '../../../src/http/answers.ts';
import { createStillClock } from '../../http/harness.ts';

describe('the answer cache', () => {
  it('stays within its bound by dropping the oldest first', async () => {
    const cache = createAnswerCache(createStillClock(), 1000, 2);
    for (const n of [1, 2, 3]) await cache.answer(`/x?n=${n}`, { n }, async () => `${n}`);
    expect(cache.byUrl('/x?n=1')).toBeUndefined();
    expect([cache.byUrl('/x?n=2')?.body, cache.byUrl('/x?n=3')?.body]).toEqual(['2', '3']);
  });

  it('does not cache under a long URL, and answers it from its parameters', async () => {
    const cache = createAnswerCache(createStillClock(), 1000);
    const url = `/x?pad=${'a'.repeat(300)}`;
    let computed = 0;
    const produce = async () => `${++computed}`;
    await cache.answer(url, {}, produce);
    expect(cache.byUrl(url)).toBeUndefined();
    expect((await cache.answer(url, {}, produce)).body).toBe('1');
  });

  it('gives equal bytes equal ETags, and other bytes others', async () => {
    const cache = createAnswerCache(createStillClock(), 1000);
    const etag = async (key: string, body: string) => (await cache.answer(`/${key}`, key, async () => body)).etag;
    expect(await etag('a', 'same')).toBe(await etag('b', 'same'));
    expect(await etag('c', 'other')).not.toBe(await etag('d', 'same'));
  });

  it('counts the age of an answer from when it was ready', async () => {
    const clock = createStillClock();
    const cache = createAnswerCache(clock, 1000);
    const produce = async () => {
      clock.now += 5000;
      return 'slow';
    };
    await cache.answer('/x', {}, produce);
    clock.now += 999;
    expect(cache.byUrl('/x')?.body).toBe('slow');
    clock.now += 1;
    expect(cache.byUrl('/x')).toBeUndefined();
  });

  it('keeps a versioned answer until the version differs, and no longer than its time', async () => {
    const clock = createStillClock();
    let version = 1;
    const cache = createAnswerCache(clock, 5000, undefined, () => version);
    const ask = async (body: string) => (await cache.answer('/x', {}, async () => body)).body;
    expect(await ask('one')).toBe('one');
    clock.now += 4999;
    expect([cache.byUrl('/x')?.body, await ask('two')]).toEqual(['one', 'one']);
    version += 1;
    expect(cache.byUrl('/x')).toBeUndefined();
    expect(await ask('two')).toBe('two');
    clock.now += 5000;
    expect(cache.byUrl('/x')).toBeUndefined();
    expect((await cache.answer('/x', {}, async () => 'three')).cacheControl).toBe('public, max-age=1');
  });

  it('does not cache an answer past a write that happened while it was made', async () => {
    let version = 1;
    const cache = createAnswerCache(createStillClock(), 5000, undefined, () => version);
    const answer = await cache.answer('/x', {}, async () => {
      version += 1;
      return 'old';
    });
    expect(answer.body).toBe('old');
    expect(cache.byUrl('/x')).toBeUndefined();
  });
});
