import { describe, expect, test } from 'vitest';
import { AppError } from '../../src/errors.ts';
import { countRunningTime } from '../support/running-time.ts';
import { SLACK_MS } from '../support/slack.ts';
import { serveFixtures, startNames } from '../support/upstream/names.ts';
import { ask } from '../support/upstream/names-endpoints.ts';
import { timeoutFor } from '../support/upstream/patience.ts';
import { FAULTS, type Fault } from '../support/upstream/replay.ts';

// Fourteen faults of sources, for each of the seven routes: what the caller gets, and how soon.

const TIMEOUT_MS = 2000;

const runningMs = countRunningTime();

interface Route {
  path: string;
  query: Record<string, string>;
  /** The status when the first sources fail so and the second ones work. 200 unless it is given. */
  first: (fault: Fault) => number;
  /** Attempts that may each take their whole time-out. */
  attempts: number;
}

const badGateway = () => 502;
const ROUTES: Route[] = [
  // Google answers instead of Cloudflare.
  { path: '/domains/dns', query: { name: 'example.com' }, first: () => 200, attempts: 2 },
  // A registry's 404 means no record. The DNS then shows that the name is registered.
  {
    path: '/domains/whois',
    query: { domain: 'example.com' },
    first: (fault) => (fault === '404' ? 200 : 502),
    attempts: 3,
  },
  // Frankfurter answers instead of the ECB.
  { path: '/currency/rates', query: {}, first: () => 200, attempts: 2 },
  { path: '/currency/convert', query: { from: 'EUR', to: 'USD', amount: '1' }, first: () => 200, attempts: 2 },
  // Both searches ask Wikipedia.
  { path: '/wiki/search', query: { q: 'jupiter' }, first: badGateway, attempts: 2 },
  {
    path: '/wiki/summary',
    query: { title: 'Jupiter' },
    first: (fault) => (fault === '404' ? 404 : 502),
    attempts: 1,
  },
  { path: '/wiki/article', query: { title: 'Jupiter' }, first: badGateway, attempts: 1 },
];

async function run(fault: Fault, both: boolean, { path, query }: Route) {
  const world = await startNames({ timeoutMs: timeoutFor(fault, TIMEOUT_MS), fault });
  try {
    serveFixtures(world);
    await world.first.setFault(fault);
    if (both) await world.second.setFault(fault);
    const startedAt = runningMs();
    const outcome = await ask(world, path, query).catch((error: unknown) => error);
    const tookMs = runningMs() - startedAt;
    if (!(outcome instanceof AppError)) return { status: outcome instanceof Error ? outcome : 200, tookMs };
    return { status: outcome.status, charged: outcome.charged, detail: outcome.message, tookMs };
  } finally {
    await world.stop();
  }
}

describe.each(FAULTS)('%s', (fault) => {
  test.concurrent.each(ROUTES)('$path, its first source failing', async (route) => {
    const { status, tookMs } = await run(fault, false, route);
    expect(status).toBe(route.first(fault));
    expect(tookMs).toBeLessThan(1.2 * route.attempts * TIMEOUT_MS + SLACK_MS);
  });

  test.concurrent.each(ROUTES.filter(({ path }) => path !== '/domains/whois'))(
    '$path, all of them failing',
    async (route) => {
      const { status, charged, detail, tookMs } = await run(fault, true, route);
      const expected = route.path === '/wiki/summary' ? route.first(fault) : 502;
      expect([status, charged]).toEqual([expected, false]);
      if (expected === 502) expect(detail).toMatch(/^(DNS over HTTPS|reference rates|Wikipedia( search)?): /);
      expect(tookMs).toBeLessThan(1.2 * route.attempts * TIMEOUT_MS + SLACK_MS);
    },
  );

  test('/domains/whois, with IANA failing too: a name that the bundled list does not know', async () => {
    // Both resolvers are asked whether the top-level domain exists, while IANA's list is read.
    const route = { path: '/domains/whois', query: { domain: 'example.nothing' }, first: badGateway, attempts: 2 };
    const { status, charged, tookMs } = await run(fault, true, route);
    expect([status, charged]).toEqual([502, false]);
    expect(tookMs).toBeLessThan(1.2 * route.attempts * TIMEOUT_MS + SLACK_MS);
  });
});

/** Optional parts of answers, and the path of the request that reads each. */
const PARTS = [
  {
    path: '/currency/rates',
    query: { days: '7' },
    prefix: '/ecb/eurofxref-hist',
    field: 'series',
    also: ['previousDate', 'changePercent'],
  },
  {
    path: '/currency/convert',
    query: { from: 'EUR', to: 'USD', amount: '1' },
    prefix: '/ecb/eurofxref-hist',
    field: 'previousDate',
    also: ['changePercent'],
  },
  { path: '/wiki/summary', query: { title: 'Mercury' }, prefix: '/wikipedia/en/w/api.php', field: 'meanings' },
];

describe.each(FAULTS.filter((fault) => fault !== 'refused'))('%s', (fault) => {
  test.concurrent.each(PARTS)(
    '$path: its part $field fails, and the answer says so of each member that needs it',
    async (part) => {
      const world = await startNames({ timeoutMs: timeoutFor(fault, TIMEOUT_MS) });
      try {
        serveFixtures(world);
        world.answers.delete('/frankfurter/v1');
        await world.first.setFault(fault, part.prefix);
        const startedAt = runningMs();
        const reply = await ask(world, part.path, part.query as Record<string, string>);
        expect(reply).toMatchObject({ [part.field]: null });
        const missing = (reply as { missing: { field: string }[] }).missing.map(({ field }) => field);
        expect(missing.toSorted()).toEqual([part.field, ...(part.also ?? [])].toSorted());
        expect(runningMs() - startedAt).toBeLessThan(1.2 * 2 * TIMEOUT_MS + SLACK_MS);
      } finally {
        await world.stop();
      }
    },
  );
});

test.each(ROUTES)('$path answers when nothing fails', async (route) => {
  const world = await startNames();
  serveFixtures(world);
  try {
    expect(await ask(world, route.path, route.query)).toHaveProperty('source');
  } finally {
    await world.stop();
  }
});
