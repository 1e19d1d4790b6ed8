import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { webCheck, webExtract } from '../../src/endpoints/web.ts';
import { AppError } from '../../src/errors.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createUpstreams, type Upstreams } from '../../src/upstream/client/client.ts';
import { createPageReader } from '../../src/upstream/web/page-reader.ts';
import { createWeb, type Web } from '../../src/upstream/web/web.ts';
import { countRunningTime } from '../support/running-time.ts';
import { SLACK_MS } from '../support/slack.ts';
import { PATIENT_MS, timeoutFor } from '../support/upstream/patience.ts';
import { FAULTS, type Fault, type Replay, startReplay, TEST_CA } from '../support/upstream/replay.ts';

/** In milliseconds, for a source that is silent. */
const TIMEOUT_MS = 500;
const timeoutOf = (fault: Fault | null): number => timeoutFor(fault, TIMEOUT_MS);
const signal = new AbortController().signal;
const HTML = { 'content-type': 'text/html; charset=utf-8' };
const PAGE = `<html><head><title>A page</title></head><body><p>${'Words upon words. '.repeat(50)}</p></body></html>`;

let plain: Replay;
let secure: Replay;
let upstreams: Upstreams;
let webs: ReadonlyMap<number, Web>;
const pages = createPageReader({ workers: 1, loadMs: 120_000, parseMs: 120_000 });
const webFor = (fault: Fault | null): Web => webs.get(timeoutOf(fault))!;

countRunningTime();
beforeAll(async () => {
  plain = await startReplay({ '/data': { body: '{"answer":42}' }, '/page': { headers: HTML, body: PAGE } });
  secure = await startReplay({ '/page': { headers: HTML, body: PAGE } }, { tls: true });
  const testHosts = new Map([
    ['plain.good.example', { address: '127.0.0.1', port: plain.port }],
    ['good.example', { address: '127.0.0.1', port: secure.port }],
  ]);
  const dial = { resolve: async () => [], testHosts, ca: TEST_CA };
  const open = (timeoutMs: number) =>
    createWeb({
      clock: systemClock,
      userAgent: 'percall/test',
      measuredFrom: 'https://us.example',
      dial,
      timeoutMs,
      hostPerMinute: 0,
      pages,
    });
  webs = new Map([TIMEOUT_MS, PATIENT_MS].map((ms) => [ms, open(ms)]));
  // The first page starts the thread that reads pages, as slowly as the machine does.
  await webFor(null).extract('http://plain.good.example/page', signal);
});
beforeEach(async () => {
  // New for each fault, because its circuit breaker would count across faults.
  upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall/test' });
  for (const replay of [plain, secure]) await replay.setFault(null);
  return () => upstreams.close();
});
afterAll(async () => {
  await pages.close();
  await plain.stop();
  await secure.stop();
});

/** The status and text of the outcome. Every failure is one that is never charged. */
async function outcome(promise: Promise<unknown>): Promise<[number, string]> {
  const started = performance.now();
  const result = await promise.then(
    () => [200, ''] as [number, string],
    (error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      expect(error.charged).toBe(false);
      return [error.status, error.message] as [number, string];
    },
  );
  expect(performance.now() - started).toBeLessThan(TIMEOUT_MS + SLACK_MS);
  return result;
}

test('there are fourteen kinds', () => {
  expect(new Set(FAULTS).size).toBe(14);
});

describe('a data upstream', () => {
  const shape = z.object({ answer: z.int() });
  const expected: Record<Fault, [number, RegExp]> = {
    refused: [502, /^up: the connection was refused$/],
    reset: [502, /^up: the connection was lost$/],
    'time-out': [502, /^up: timed out$/],
    'slow-body': [502, /^up: timed out$/],
    'redirect-loop': [502, /^up: redirects too often$/],
    // An empty result, from which the endpoint makes a 404.
    '404': [200, /^$/],
    '429': [502, /^up: answered HTTP 429$/],
    '500': [502, /^up: answered HTTP 500$/],
    html: [502, /^up: answered text\/html instead of JSON$/],
    'truncated-json': [502, /^up: answered what is not JSON$/],
    'wrong-shape': [502, /^up: answered JSON of an unexpected shape \(answer\)$/],
    huge: [502, /^up: its answer is larger than 64 KiB$/],
    'wrong-content-type': [502, /^up: answered image\/png instead of JSON$/],
    'encoding-lie': [502, /^up: its answer is not encoded as it says$/],
  };

  test.each(FAULTS.flatMap((fault) => [[fault, 0] as const, [fault, 1] as const]))(
    '%s, with %i retries',
    async (fault, retries) => {
      const options = { name: 'up', timeoutMs: timeoutOf(fault), maxBytes: 64 * 1024, concurrency: 2, retries };
      const up = upstreams.open(options);
      await plain.setFault(fault);
      const [status, words] = await outcome(up.json({ url: `${plain.url}/data` }, shape));
      expect([status, words]).toEqual([expected[fault][0], expect.stringMatching(expected[fault][1])]);
      await plain.setFault(null);
      // A call may reach a short time-out on a busy machine.
      const recovered = () => up.json({ url: `${plain.url}/data` }, shape).catch((error: Error) => error.message);
      await expect.poll(recovered).toEqual({ answer: 42 });
    },
  );
});

const extractFails: Partial<Record<Fault, [number, RegExp]>> = {
  refused: [502, /the connection was refused/],
  reset: [502, /the connection was lost/],
  'time-out': [502, /timed out/],
  'slow-body': [502, /timed out/],
  'redirect-loop': [502, /redirects more than 5 times/],
  '404': [404, /has no such page/],
  '429': [502, /answers HTTP 429/],
  '500': [502, /answers HTTP 500/],
  huge: [502, /larger than 3072 KiB/],
  'wrong-content-type': [502, /answers image\/png, not a page/],
  'encoding-lie': [502, /not encoded as it says/],
  // `html`, `truncated-json` and `wrong-shape` are ordinary documents here, because a web page cannot have the wrong type.
};
const checkFails: Partial<Record<Fault, [number, RegExp]>> = {
  refused: [502, /the connection was refused/],
  reset: [502, /the connection was lost/],
  'time-out': [502, /timed out/],
  'redirect-loop': [502, /redirects more than 5 times/],
  // Every status is an answer, and bodies are not read.
};

describe.each([
  ['http://plain.good.example/page', () => plain],
  ['https://good.example/page', () => secure],
] as const)('a page at %s', (url, replay) => {
  test.each(FAULTS)('web/extract: %s', async (fault) => {
    await replay().setFault(fault);
    const [status, words] = await outcome(webExtract.run({ url }, { web: webFor(fault) } as never, signal));
    const [wanted, pattern] = extractFails[fault] ?? [200, /^$/];
    expect([status, words]).toEqual([wanted, expect.stringMatching(pattern)]);
    if (status === 502) expect(words).toMatch(/^(plain\.)?good\.example: /);
  });

  test.each(FAULTS)('web/check: %s', async (fault) => {
    await replay().setFault(fault);
    const [status, words] = await outcome(webCheck.run({ url }, { web: webFor(fault) } as never, signal));
    const [wanted, pattern] = checkFails[fault] ?? [200, /^$/];
    expect([status, words]).toEqual([wanted, expect.stringMatching(pattern)]);
  });

  test.each([
    [null, 200, true],
    ['404', 404, false],
    ['429', 429, false],
    ['500', 500, false],
  ] as const)('web/check says whether it is up: %s', async (fault, status, up) => {
    await replay().setFault(fault);
    expect(await webCheck.run({ url }, { web: webFor(fault) } as never, signal)).toMatchObject({ status, up });
  });
});
