import { describe, expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { parseParams } from '../../../src/catalogue/params.ts';
import { listedPath } from '../../../src/catalogue/paths.ts';
import { NO_COLLECTOR } from '../../../src/collector/store/facts.ts';
import { useCollected } from './collected-fixture.ts';
import { run } from './fixture.ts';

const given = useCollected({ endpoints: [{ name: 'a.example', url: 'https://a.example' }] });
const UNKNOWN = { head: null, collected: null, lagBlocks: null, lagSeconds: null };

describe('before anything is collected', () => {
  test.each([
    ['/v1/activity', { hours: [] }],
    ['/v1/deploys', { deploys: [] }],
    ['/v1/rpc', { endpoints: [{ latencyMs: null, headLagBlocks: null, ok: null, checkedAt: null }] }],
    [
      '/v1/fx',
      { last: null, window: { trades: 0, volumeUsdc: '0', vwap: null, low: null, high: null, complete: false } },
    ],
    ['/v1/token', { token: null, burned: null, payouts: null, price: null, recent: [] }],
    ['/v1/health', { status: 'stalled', readings: { headMovedSecondsAgo: null, headCheckedSecondsAgo: null } }],
  ])('%s answers null for what it does not know', async (path, expected) => {
    given().status = NO_COLLECTOR.status();
    const endpoint = catalogue.find((candidate) => listedPath(candidate) === path)!;
    const reply = await run(endpoint, given().sources, parseParams(endpoint, {}));
    expect(reply).toMatchObject({ ...expected, freshness: UNKNOWN });
    expect(reply.source).toMatchObject({ url: 'http://127.0.0.1:1' });
  });

  test.each([
    '/v1/fees',
    '/v1/paid/fees/forecast',
    '/v1/paid/deploys/history',
    '/v1/paid/rpc/health',
    '/v1/paid/fx/execution',
    '/v1/lightning/market/prices',
  ])('%s is 503 with a time to come back', async (path) => {
    given().status = NO_COLLECTOR.status();
    const endpoint = catalogue.find((candidate) => listedPath(candidate) === path)!;
    const params = parseParams(endpoint, {});
    await expect(run(endpoint, given().sources, params)).rejects.toMatchObject({
      status: 503,
      code: 'not_collected_yet',
      retryAfterSeconds: 5,
    });
  });
});
