import { getEventListeners } from 'node:events';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineEndpoint } from '../../../src/catalogue/endpoint.ts';
import { AppError, UpstreamFailed } from '../../../src/errors.ts';
import { runEndpoint } from '../../../src/payment/checkout.ts';

type Run = (signal: AbortSignal) => Promise<{ n: number }>;

const endpoint = defineEndpoint({
  path: '/test/run',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Run',
  summary: 'Does what the test hands it.',
  notFor: null,
  tags: '',
  ofChain: false,
  params: z.object({}),
  result: z.strictObject({ n: z.number() }),
  example: { params: {}, result: { n: 1 } },
  run: (_params, run: Run, signal) => run(signal),
});

function start(run: Run, timeoutMs = 60_000) {
  const buyer = new AbortController();
  return { buyer, answer: runEndpoint(endpoint, {}, { sources: run, timeoutMs, signal: buyer.signal }) };
}
/** Never answers. Records the reason with which it was stopped. */
function hanging() {
  const stopped = Promise.withResolvers<unknown>();
  const run: Run = (signal) => {
    signal.addEventListener('abort', () => stopped.resolve(signal.reason), { once: true });
    return new Promise(() => {});
  };
  return { run, stopped: stopped.promise };
}

test('a run returns the reply’s bytes and leaves no listener on the buyer’s signal', async () => {
  let own: AbortSignal | undefined;
  const { buyer, answer } = start(async (signal) => {
    own = signal;
    return { n: 7 };
  });
  expect((await answer).toString()).toBe('{"n":7}');
  expect(getEventListeners(buyer.signal, 'abort')).toEqual([]);
  buyer.abort();
  expect(own?.aborted).toBe(false);
});

test('a run that takes too long is an upstream failure, and its own signal aborts', async () => {
  const { run, stopped } = hanging();
  const { buyer, answer } = start(run, 5);
  await expect(answer).rejects.toThrow(new UpstreamFailed('endpoint', 'no answer in time'));
  expect(await stopped).toBeInstanceOf(UpstreamFailed);
  expect(getEventListeners(buyer.signal, 'abort')).toEqual([]);
});

test('a buyer who disconnects before or during a run ends it with 499', async () => {
  const { run, stopped } = hanging();
  const { buyer, answer } = start(run);
  buyer.abort('left');
  await expect(answer).rejects.toMatchObject({ status: 499, code: 'client_gone' });
  expect(await stopped).toBe('left');
  const gone = runEndpoint(endpoint, {}, { sources: hanging().run, timeoutMs: 60_000, signal: AbortSignal.abort() });
  await expect(gone).rejects.toMatchObject({ status: 499 });
});

test('a run throws what the endpoint throws, at once or later', async () => {
  const own = new AppError(404, 'not_here', 'there is no such thing');
  await expect(start(() => Promise.reject(own)).answer).rejects.toBe(own);
  const atOnce = () => {
    throw own;
  };
  const { buyer, answer } = start(atOnce);
  await expect(answer).rejects.toBe(own);
  expect(getEventListeners(buyer.signal, 'abort')).toEqual([]);
});

test('a reply that breaks its own schema is never sold, and the error says for the log what is wrong with it', async () => {
  const { answer } = start(async () => ({ n: 'seven' }) as never);
  await expect(answer).rejects.toThrow(/does not match its schema/);
  await expect(answer).rejects.toMatchObject({ cause: { issues: [{ path: ['n'] }] } });
});

test('a run leaves no timer, however it ended', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    await start(async () => ({ n: 7 })).answer;
    await expect(start(() => Promise.reject(new Error('failed'))).answer).rejects.toThrow('failed');
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});
