import { expect, test } from 'vitest';
import { gatherParts } from '../../../src/endpoints/fields.ts';
import { UpstreamFailed } from '../../../src/errors.ts';

const never = new AbortController().signal;

test('parts are read at once; one that its source fails is null, with the reason', async () => {
  const order: string[] = [];
  const { parts, missing } = await gatherParts<{ a: number; b: string; c: number }>(
    {
      a: async () => order.push('a'),
      b: async () => {
        order.push('b');
        throw new UpstreamFailed('osv', 'answered HTTP 500');
      },
      c: async () => order.push('c'),
    },
    never,
  );
  expect(order).toEqual(['a', 'b', 'c']);
  expect([parts, missing]).toEqual([{ a: 1, b: null, c: 3 }, [{ field: 'b', reason: 'osv: answered HTTP 500' }]]);
});

test('a bug in a part is a bug of the answer', async () => {
  const bug = async () => {
    throw new TypeError('x is undefined');
  };
  await expect(gatherParts({ a: bug }, never)).rejects.toBeInstanceOf(TypeError);
});

test('a caller that leaves is not answered', async () => {
  const control = new AbortController();
  const asked = gatherParts({ a: () => new Promise(() => undefined) }, control.signal);
  control.abort(new Error('gone'));
  await expect(asked).rejects.toThrow('gone');
});

test('a part that takes too long is null, whether it heeds its signal or not', async () => {
  const heeds = (signal: AbortSignal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const { parts, missing } = await gatherParts({ deaf: () => new Promise(() => undefined), heeds }, never);
  expect(parts).toEqual({ deaf: null, heeds: null });
  expect(missing.map(({ reason }) => reason)).toEqual(['took too long', 'took too long']);
});
