import { describe, expect, test } from 'vitest';
import { describeFacilitator } from '../../../src/facilitator/facilitator.ts';
import type { PageParts } from '../../../src/pages/page-parts.ts';
import { renderStatus } from '../../../src/pages/status.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const clock = createManualClock(1_800_000_000_000);
const health = {
  status: 'ok',
  thresholds: { stalledSeconds: 30, lagBlocks: 60, lagSeconds: 30 },
  readings: { headMovedSecondsAgo: 0, headCheckedSecondsAgo: 0, lagBlocks: 1, lagSeconds: 2, windowCollected: 0.5 },
  freshness: { head: 9, collected: 8, lagBlocks: 1, lagSeconds: 2 },
};
const counts = { total: 7, today: 3, nodes: 2, own: 0 };
/** The checks of a process; those that fail prevent each sale, except for ways to pay and the given others. */
const readinessOf = (
  checks: Record<string, { ok: boolean; detail?: string }>,
  ways: readonly string[] = [],
  others: readonly string[] = [],
) => {
  const failing = Object.keys(checks).filter((name) => !checks[name]?.ok && ![...ways, ...others].includes(name));
  return Object.assign(async () => ({ failing, ways, checks }), { outcomeOf: () => null });
};
const NO_DAYS = async () => [];
const fine = readinessOf({ ledger: { ok: true }, usdc: { ok: true } });

/** Parts without a fault, except for the given ones. */
function partsOf(more: Partial<PageParts> = {}, answers: object = { '/health': health }): PageParts {
  const limits = { maxTimeoutSeconds: 3600, perMinute: 60, dailyCap: 20_000 };
  return {
    config: {
      publicOrigin: 'https://us.example',
      handlerTimeoutMs: 1000,
      network: {
        name: 'Arc',
        isPlayMoney: false,
        caip2: 'eip155:5042',
        usdc: `0x36${'0'.repeat(38)}`,
        chainId: 5042,
        explorerUrl: null,
        getUsdcUrl: null,
        walletRpcUrls: [],
      },
      protocols: { mpp: false },
      rails: { gateway: null, exactFrom: 0n },
      web: { contactUrl: null },
      site: { sourceUrl: null, termsUrl: null },
      seller: `0x${'5e'.repeat(20)}`,
      trustedProxies: [],
    },
    catalogue: [],
    clock,
    readiness: fine,
    read: async (path) => (path in answers ? answers[path as never] : null),
    charts: { feeSteps: () => [], probes: () => [] },
    upstreams: () => [],
    startedAtMs: 0,
    facilitator: { descriptor: async () => describeFacilitator('https://us.example', limits, counts) },
    market: { all: () => [] },
    discovery: { searchPage: () => Promise.reject(new Error('this test searches nothing')) },
    demoBuyer: null,
    settled: { settledBetween: async () => [] },
    settledOn: () => 'usdc',
    refused: null,
    ...more,
  };
}

const verdictOf = async (parts: PageParts) =>
  /class="(verdict [^"]*)">([^<]*)</.exec(await renderStatus(parts, async () => [], NO_DAYS))?.slice(1);

describe('the verdict', () => {
  test('is that everything works when every part does', async () => {
    expect(await verdictOf(partsOf())).toEqual(['verdict good', 'Everything works.']);
  });

  test('names the parts that prevent a sale, and says that nothing is charged', async () => {
    const checks = { ledger: { ok: true }, usdc: { ok: false, detail: 'gone' }, constructor: { ok: false } };
    const [look, words] = (await verdictOf(partsOf({ readiness: readinessOf(checks) }))) ?? [];
    expect(look).toBe('verdict bad');
    expect(words).toBe('Priced calls cannot be served now (USDC contract, constructor); nothing is charged.');
  });

  test('says that one of several ways to pay does not work, and not that nothing is sold', async () => {
    const checks = { ledger: { ok: true }, gateway: { ok: false, detail: 'gone' } };
    expect(await verdictOf(partsOf({ readiness: readinessOf(checks, ['gateway']) }))).toEqual([
      'verdict bad',
      'One way to pay does not work now (Circle Gateway).',
    ]);
  });

  test('counts the ways to pay that do not work', async () => {
    const checks = { ledger: { ok: true }, gateway: { ok: false }, channels: { ok: false } };
    expect(await verdictOf(partsOf({ readiness: readinessOf(checks, ['gateway', 'channels']) }))).toEqual([
      'verdict bad',
      '2 ways to pay do not work now (Circle Gateway, Payment channels).',
    ]);
  });

  test('reports a failing Lightning rail separately from sales in USDC', async () => {
    const checks = { ledger: { ok: true }, lightning: { ok: false, detail: 'no answer' } };
    expect(await verdictOf(partsOf({ readiness: readinessOf(checks, [], ['lightning']) }))).toEqual([
      'verdict bad',
      'Nothing can be sold for bitcoin now.',
    ]);
  });

  test('reports a clock that is off by its name, and not as a lost way to pay', async () => {
    const detail = "this machine's clock is 9 s behind the chain's newest block: set it by NTP";
    const parts = partsOf({ readiness: readinessOf({ clock: { ok: false, detail } }, ['gateway'], ['clock']) });
    expect(await verdictOf(parts)).toEqual([
      'verdict bad',
      'The clock of this machine is off, so payments that are good may be refused.',
    ]);
    expect(await renderStatus(parts, async () => [], NO_DAYS)).toContain('>Clock</th><td class="bad">fault</td>');
  });

  test('never leaves out a check that fails', async () => {
    const readiness = readinessOf({ ledger: { ok: true }, another: { ok: false } }, [], ['another']);
    expect(await verdictOf(partsOf({ readiness }))).toEqual(['verdict bad', 'another: a fault.']);
  });

  test.each([
    ['stalled', 'head has not moved'],
    ['lagging', 'behind the chain'],
  ])('says so when the collector is %s', async (status, words) => {
    const verdict = await verdictOf(partsOf({}, { '/health': { ...health, status } }));
    expect(verdict?.[1]).toContain(words);
  });

  test('does not wait for a part that does not answer, and reports its state as unknown', async () => {
    const readiness = Object.assign(() => new Promise<never>(() => {}), { outcomeOf: () => null });
    const page = verdictOf(partsOf({ readiness }));
    await clock.advance(3000);
    expect((await page)?.[1]).toContain('is not known: a part gave no answer in time');
    expect(clock.pendingSleeps()).toEqual([]);
  });

  test('is never good while the collector’s state is not known', async () => {
    expect((await verdictOf(partsOf({}, {})))?.[0]).toBe('verdict bad');
  });
});

describe('the first minute after a start', () => {
  const unread = {
    '/health': {
      ...health,
      status: 'stalled',
      freshness: { head: null, collected: null, lagBlocks: null, lagSeconds: null },
    },
  };
  const startedAtMs = clock.nowMs() - 30_000;

  test('is called a start, not a fault, while the chain was not read yet', async () => {
    expect((await verdictOf(partsOf({ startedAtMs }, unread)))?.[0]).toBe('verdict starting');
    expect((await verdictOf(partsOf({ startedAtMs: startedAtMs - 30_000 }, unread)))?.[0]).toBe('verdict bad');
  });

  test('does not hide a fault that is known', async () => {
    const readiness = readinessOf({ lightning: { ok: false, detail: 'its key is another' } }, [], ['lightning']);
    expect((await verdictOf(partsOf({ startedAtMs, readiness }, unread)))?.[0]).toBe('verdict bad');
  });
});

describe('a source of data', () => {
  const rpc = { endpoints: [{ name: 'one', ok: true, latencyMs: 5, headLagBlocks: 0, checkedAt: 1 }] };
  const at = clock.nowMs();
  const rowsOf = async (parts: Partial<PageParts>) => {
    const page = await renderStatus(partsOf(parts, { '/health': health, '/rpc': rpc }), async () => [], NO_DAYS);
    const table = /<div id="sources"[\s\S]*?<\/table>/.exec(page)?.[0] ?? '';
    return [...table.matchAll(/<tr><th scope="row"[^>]*>(.*?)<\/th>(.*?)<\/tr>/g)].map(([, name, cells = '']) => [
      name,
      ...[...cells.matchAll(/<td[^>]*>(.*?)<\/td>/g)].map(([, cell = '']) => cell.replace(/<[^>]+>/g, '')),
    ]);
  };

  test('has one row with its last success and its last failure', async () => {
    const probes = () => [
      { atMs: at - 3000, latencyMs: null },
      { atMs: at - 1000, latencyMs: 5 },
    ];
    const upstreams = () => [
      { name: 'npm', okAtMs: at - 9000, failedAtMs: at - 2000, reason: 'timed out' },
      { name: 'osv', okAtMs: null, failedAtMs: null, reason: null },
    ];
    expect(await rowsOf({ charts: { feeSteps: () => [], probes }, upstreams })).toEqual([
      ['Chain: one', 'answers', '2027-01-15 07:59:59', '2027-01-15 07:59:57', 'no answer to a probe'],
      ['npm: packages', 'fails', '2027-01-15 07:59:51', '2027-01-15 07:59:58', 'timed out'],
      ['OSV: advisories', 'not asked yet', 'none seen', 'none seen', ''],
    ]);
  });
});

describe('what settled today', () => {
  const sums = [
    { rail: 'usdc', count: 1234, amount: 617_000n },
    { rail: 'gateway', count: 1, amount: 500n },
    { rail: 'lightning', count: 2, amount: 21_500n },
  ] as const;

  test('is shown by rail, each in its own unit, with the facilitator’s claims', async () => {
    const page = await renderStatus(partsOf(), async () => sums, NO_DAYS);
    const rows = [
      ...page.matchAll(
        /<tr(?: id="settled-\w+")?><th scope="row">([^<]*)<\/th><td class="number">(.*?)<\/td><td class="number">(.*?)<\/td>/g,
      ),
    ];
    expect(rows.map(([, ...cells]) => cells)).toEqual([
      ['USDC', '1,234', '0.617 USDC'],
      ['USDC through the Gateway', '1', '0.0005 USDC'],
      ['Lightning', '2', '21.5 sats'],
      ['Facilitator, for sellers', '3', '–'],
    ]);
  });

  test('is "not known" rather than zero while the ledger does not answer', async () => {
    const fails = () => Promise.reject(new Error('closed'));
    const page = await renderStatus(partsOf({ facilitator: { descriptor: fails } }), fails, NO_DAYS);
    expect(page).toContain('The ledger gave no answer');
    expect(page).not.toContain('id="settled-usdc"');
    expect(page).toMatch(/for sellers<\/th><td class="number"><span class="unknown">/);
  });
});

describe('the last thirty days', () => {
  const DAY = 86_400_000;
  const midnight = Math.floor(clock.nowMs() / DAY) * DAY;
  const sold = [
    { rail: 'lightning', count: 3, amount: 63_500n },
    { rail: 'gateway', count: 1, amount: 500n },
    { rail: 'usdc', count: 2, amount: 4000n },
  ];
  const days = [
    { dayMs: midnight - 2 * DAY, sums: sold },
    { dayMs: midnight - DAY, sums: null },
  ];
  const counted = [
    { code: 'expired', count: 1234, recentCount: 5 },
    { code: '<i>theirs', count: 2, recentCount: 0 },
  ];
  const sentenceOf = (code: string) => (code === 'expired' ? 'Sign a new one.' : undefined);
  const refused = { read: async () => counted, sentenceOf };
  const today = async () => [{ rail: 'usdc', count: 1, amount: 500_000n }];
  const draw = (more: Partial<PageParts> = {}) => renderStatus(partsOf({ refused, ...more }), today, async () => days);
  /** The table of a chart: its heads, and its rows as text. */
  const tableOf = (page: string, id: string) => {
    const figure = new RegExp(`<figure [^>]*id="${id}"(.*?)</figure>`, 's').exec(page)?.[1] ?? '';
    const texts = (tag: string, text: string) =>
      [...text.matchAll(new RegExp(`<${tag}[^>]*>(.*?)</${tag}>`, 'gs'))].map(([, inner = '']) =>
        inner.replace(/<[^>]+>/g, ''),
      );
    return {
      figure,
      heads: texts('th', /<thead>(.*?)<\/thead>/s.exec(figure)?.[1] ?? ''),
      rows: texts('tr', /<tbody[^>]*>(.*?)<\/tbody>/s.exec(figure)?.[1] ?? '').map((row) => row.slice(0, 10)),
      cells: [...figure.matchAll(/<tr><th scope="row">.*?<\/th>(.*?)<\/tr>/gs)].map(([, row = '']) => texts('td', row)),
    };
  };

  test('are charts of calls by way, of USDC and of sats apart, with their data as tables, by UTC day', async () => {
    const page = await draw();
    const calls = tableOf(page, 'calls');
    expect(calls.heads).toEqual(['Day (UTC)', 'USDC, calls', 'Gateway, calls', 'Lightning, calls']);
    expect(calls.rows).toEqual(['2027-01-13', '2027-01-14', '2027-01-15']);
    expect(calls.cells).toEqual([
      ['2', '1', '3'],
      ['–', '–', '–'],
      ['1', '0', '0'],
    ]);
    expect(calls.figure).toContain('data-value="7"');
    expect(tableOf(page, 'revenue').heads).toEqual(['Day (UTC)', 'USDC, USDC', 'Gateway, USDC']);
    expect(tableOf(page, 'revenue').cells).toEqual([
      ['0.004', '0.0005'],
      ['–', '–'],
      ['0.5', '0'],
    ]);
    expect(tableOf(page, 'revenue').figure).toContain('data-value="0.5045"');
    expect(tableOf(page, 'sats').cells).toEqual([['63.5'], ['–'], ['0']]);
  });

  test('say that a day is not read yet, and only then', async () => {
    expect(await draw()).toContain('Days that are not read yet are left out.');
    const all = await renderStatus(partsOf({ refused }), today, async () => days.slice(0, 1));
    expect(all).not.toContain('not read yet');
  });

  test('count refused calls by code, with what the buyer is told, and no code becomes markup', async () => {
    const page = await draw();
    const rows = [...page.matchAll(/<tr><th scope="row" class="part-name"><code>(.*?)<\/code>(.*?)<\/tr>/gs)];
    expect(
      rows.map(([, code, rest = '']) => [
        code,
        rest
          .replace(/<[^>]+>/g, ' ')
          .trim()
          .split(/\s{2,}/),
      ]),
    ).toEqual([
      ['expired', ['5', '1,234', 'Sign a new one.']],
      ['&lt;i&gt;theirs', ['0', '2']],
    ]);
    expect(await draw({ refused: { read: async () => [], sentenceOf } })).toContain('None in the last 30 days.');
  });

  test('are "not known" while the ledger does not answer, and the page is shown', async () => {
    const page = await draw({ refused: { read: () => Promise.reject(new Error('closed')), sentenceOf } });
    expect(page).toMatch(/id="refused" data-live><p><span class="unknown">not known/);
  });

  test('are neither read nor shown where they are off', async () => {
    const read = () => Promise.reject(new Error('this test reads no days'));
    const page = await renderStatus(partsOf(), today, read);
    expect(page).toContain('id="settled-usdc"');
    expect(page).not.toMatch(/30 days|id="calls"|id="revenue"|id="sats"|id="refused"/);
  });
});
