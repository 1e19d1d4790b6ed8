import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { challenge } from '../support/market/market.ts';
import { auditAccessibility } from '../support/pages/axe.ts';
import { describeInBrowser, type Visit } from '../support/pages/browser.ts';
import { usdcRoutes } from '../support/prices.ts';
import { type Service, startService } from '../support/service/service.ts';
import { type Replay, startReplay } from '../support/upstream/replay.ts';

// The pages in a real browser, with the whole service on the embedded network.

const MAX_BYTES = 150_000;
const PAGES = ['/', '/market', '/status', '/docs'];

let network: EmbeddedNetwork;
let seller: Replay;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  const resource = { description: 'Weather <script>alert(1)</script> for tomorrow' };
  seller = await startReplay({ '/weather': challenge(undefined, { resource }), '/free': { body: '{}' } });
  service = await startService(network, {
    env: {
      ALLOW_TEST_HOSTS: `seller.example=127.0.0.1:${seller.port}`,
      SELFTEST_PRIVATE_KEY: network.selfTester.privateKey,
      PROBE_INTERVAL_MS: '1000',
    },
  });
  await service.deps.selfTest?.run(new AbortController().signal);
  const read = async (path: string) => JSON.parse((await service.get(path)).body);
  await vi.waitFor(
    async () => {
      const [fees, rpc] = [await read('/v1/fees'), await read('/v1/rpc')];
      if (fees.baseFee === null || !rpc.endpoints[0].ok) throw new Error('nothing is collected yet');
    },
    { timeout: 120_000, interval: 100 },
  );
});
afterAll(async () => {
  await service?.stop();
  await seller?.stop();
  await network?.stop();
});

/** Evaluated as text, because the tests are type-checked without the DOM. */
const ask = <T>(page: Page, expression: string) => page.evaluate(expression) as Promise<T>;
const DRAWN = `[...document.querySelectorAll('figure.chart')].every((one) => one.dataset.points > 0)`;
/** Polls from the test. Waiting inside the page would need an eval, which the page's policy forbids. */
const charts = (page: Page) =>
  vi.waitFor(async () => expect(await ask(page, DRAWN)).toBe(true), { timeout: 60_000, interval: 50 });

const HOUR_MS = 3_600_000;
/** Stops the page's own clock, which was installed before the page was loaded. It jumps ahead once, and then stands unless a test moves it. */
const stopClock = async (page: Page) => page.clock.pauseAt((await ask<number>(page, 'Date.now()')) + HOUR_MS);
/** Counts the updates that the page waits for, and holds their answers while `held` is pending. */
const WATCH_UPDATES = `(() => {
  const { fetch } = window;
  Object.assign(window, { updating: 0, held: undefined });
  window.fetch = async (...all) => {
    updating += 1;
    const answer = await fetch(...all);
    const text = await answer.text();
    await held;
    return { ok: answer.ok, text: async () => { updating -= 1; return text; } };
  };
})()`;
const untilUpdated = (page: Page) => expect.poll(() => ask(page, 'updating')).toBe(0);

const UNFOLD_ALL = `document.querySelectorAll('details').forEach((one) => { one.open = true; })`;
/** What no template can promise alone: that no two elements have one id. */
const IDS_TWICE = `(() => {
  const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id);
  return ids.filter((id, at) => ids.indexOf(id) < at);
})()`;
/** What one template draws, in the reference. The slow lane audits all of it. */
const ALIKE = 'details.op';

function expectQuiet({ observed }: Visit): void {
  const { consoleErrors, pageErrors, cspViolations, failedRequests } = observed;
  expect({ consoleErrors, pageErrors, cspViolations, failedRequests }).toEqual({
    consoleErrors: [],
    pageErrors: [],
    cspViolations: [],
    failedRequests: [],
  });
}

describeInBrowser('the pages', (browser) => {
  const visit = (path: string, options?: Parameters<typeof browser.visit>[1]) =>
    browser.visit(`${service.origin}${path}`, options);

  describe.each(PAGES)('%s', (path) => {
    let wide: Visit;
    let phone: Visit;
    /** Of both visits, until they were drawn. An open page is updated, and so transfers more. */
    const bytes: number[] = [];
    beforeAll(async () => {
      [wide, phone] = await Promise.all([
        visit(path, { newProfile: true }),
        visit(path, { newProfile: true, screen: 'phone', colorScheme: 'dark' }),
      ]);
      await Promise.all([wide, phone].map(({ page }) => page.waitForLoadState('networkidle')));
      for (const { page, observed } of [wide, phone]) {
        await charts(page);
        bytes.push(observed.transferredBytes);
      }
    });
    afterAll(() => Promise.all([wide, phone].map((one) => one?.page.context().close())));

    test.each([
      ['on a desktop, in light', 'light', () => wide, () => bytes[0]],
      ['on a phone, in dark', 'dark', () => phone, () => bytes[1]],
    ] as const)('logs nothing and is small, %s', async (_where, colorScheme, visited, transferred) => {
      const seen = visited();
      await seen.page.emulateMedia({ colorScheme });
      await seen.page.waitForLoadState('networkidle');
      await charts(seen.page);
      expectQuiet(seen);
      expect(transferred()).toBeGreaterThan(3000);
      expect(transferred()).toBeLessThanOrEqual(MAX_BYTES);
      const origins = new Set(seen.observed.requests.map((url) => new URL(url).origin));
      expect([...origins]).toEqual([service.origin]);
    });

    test('fits on a phone', async () => {
      // The window's own width is no measure: a phone zooms out until everything fits.
      const [width, screen] = await ask<number[]>(phone.page, '[document.documentElement.scrollWidth, screen.width]');
      expect(width).toBe(screen);
    });

    test('is accessible on a phone, in light', async () => {
      await phone.page.emulateMedia({ colorScheme: 'light' });
      await charts(phone.page);
      expect(await auditAccessibility(phone.page, { alike: ALIKE })).toEqual([]);
      expectQuiet(phone);
    });

    test('works by keyboard: first the skip link, then everything in its order', async () => {
      const { page } = wide;
      // An update would replace the elements whose order is compared.
      await ask(page, `document.querySelector('#live-switch button')?.click()`);
      await page.keyboard.press('Tab');
      const skip = `(() => { const { top } = document.activeElement.getBoundingClientRect(); return [document.activeElement.className, top >= 0]; })()`;
      expect(await ask(page, skip)).toEqual(['skip', true]);
      await page.keyboard.press('Enter');
      expect(await ask(page, 'document.activeElement.id')).toBe('main');
      const step = `(() => {
        const [before, now] = [window.before, document.activeElement];
        window.before = now;
        const isForward = !before || (before.compareDocumentPosition(now) & Node.DOCUMENT_POSITION_FOLLOWING) > 0;
        return [isForward, now !== document.body, getComputedStyle(now).outlineStyle !== 'none'];
      })()`;
      const stops = `[...document.querySelectorAll('main a, main button, main input, main select, main summary, main [tabindex="0"]')]
        .filter((one) => one.checkVisibility() && !one.closest('details:not([open]) > :not(summary)')).length`;
      const count = Math.min((await ask<number>(page, stops)) + 4, 20);
      expect(count).toBeGreaterThan(6);
      for (let pressed = 0; pressed < count; pressed += 1) {
        await page.keyboard.press('Tab');
        expect([pressed, ...(await ask<boolean[]>(page, step))]).toEqual([pressed, true, true, true]);
      }
      await ask(page, `document.querySelector('#live-switch button')?.click()`);
    });

    // The scheme changes colours alone, which test/unit/pages/assets.test.ts holds. So the other rules are asked once. The colours of dark take a second
    // check of the whole page, which the quick lane leaves out where the page is longest.
    const isCheckedInDark = path !== '/docs' || process.env.SLOW;
    test(`is accessible with everything unfolded, in the colours of light${isCheckedInDark ? ' and of dark' : ''}`, async () => {
      await wide.page.emulateMedia({ colorScheme: 'light' });
      await ask(wide.page, UNFOLD_ALL);
      expect(await ask(wide.page, IDS_TWICE)).toEqual([]);
      if (process.env.SLOW) expect(await auditAccessibility(wide.page)).toEqual([]);
      expect(await auditAccessibility(wide.page, { alike: ALIKE })).toEqual([]);
      if (isCheckedInDark) {
        await wide.page.emulateMedia({ colorScheme: 'dark' });
        expect(await auditAccessibility(wide.page, { alike: ALIKE, coloursOnly: true })).toEqual([]);
      }
      expectQuiet(wide);
    });
  });

  test.each(['/terms', '/nowhere'])('%s fits on a phone and is accessible', async (path) => {
    const { page } = await visit(path, { screen: 'phone', colorScheme: 'dark' });
    expect(await page.locator('h1').count()).toBe(1);
    expect(await ask(page, 'document.documentElement.scrollWidth')).toBe(await ask(page, 'screen.width'));
    expect(await auditAccessibility(page)).toEqual([]);
  });

  describe('a chart', () => {
    /** The number of pixels of a chart's canvas that are not transparent, by colour. */
    const colours = (page: Page, id: string) =>
      ask<string[]>(
        page,
        `(() => {
          const canvas = document.querySelector('#${id} canvas');
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          const seen = new Set();
          for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) seen.add([...data.slice(at, at + 3)].join());
          return [...seen];
        })()`,
      );

    /** What is drawn and what the tables hold, in one look: an update of the page changes the rows and draws them. */
    const figuresOf = (page: Page) =>
      ask<{ points: string; latest: string; rows: number; last: string }[]>(
        page,
        `['fees', 'rpc'].map((id) => {
          const { rows } = document.getElementById(id + '-rows');
          return { ...document.getElementById(id).dataset, rows: rows.length, last: [...rows].at(-1).querySelector('td').textContent };
        })`,
      );

    let page: Page;
    beforeAll(async () => {
      ({ page } = await visit('/', { newProfile: true, reducedMotion: 'no-preference' }));
    });
    afterAll(() => page?.context().close());

    test('shows the data that the free routes answer', async () => {
      await charts(page);
      const figures = await figuresOf(page);
      expect(figures.map(({ points }) => Number(points))).toEqual(figures.map(({ rows }) => rows));
      // The embedded chain's fee is at its lowest value.
      expect(figures[0]?.latest).toBe(JSON.parse((await service.get('/v1/fees')).body).baseFee.gwei);
      expect([Number(figures[1]?.latest) > 0, figures[1]?.latest]).toEqual([true, figures[1]?.last]);
      // After a change of the window's size the lines are drawn anew.
      for (const id of ['fees', 'rpc'])
        await expect.poll(async () => (await colours(page, id)).length).toBeGreaterThan(2);
    });

    test('has units beside its axes and values in its legend, with and without a cursor', async () => {
      await charts(page);
      const legend = () => page.locator('#fees .u-legend').textContent();
      await expect.poll(legend).toMatch(/UTC:?\s*\d\d:\d\d:\d\d[\s\S]*Mean:?\s*[\d.]+ gwei/);
      expect(await page.locator('.u-legend').allTextContents()).not.toContainEqual(expect.stringContaining('--'));
      await page.locator('#fees .u-over').hover();
      await expect.poll(legend).not.toContain('--');
      await page.mouse.move(0, 0);
      await expect.poll(legend).toMatch(/Mean:?\s*[\d.]+ gwei/);
    });

    test.each([
      ['desktop', '/status', 'rpc', '13:32:45'],
      ['phone', '/', 'fees', '13:32:30'],
    ] as const)('on a %s clips no label at its edges', async (screen, path, id, last) => {
      const { page } = await visit(path, { screen });
      await ask(page, `document.querySelector('#live-switch button').click()`);
      await charts(page);
      const edges = `(() => {
        const rows = document.getElementById('${id}-rows');
        const columns = document.querySelectorAll('#${id} thead th').length - 1;
        const end = Date.parse('2026-01-01T${last}Z');
        rows.replaceChildren(...Array.from({ length: 13 }, (_, at) => {
          const row = document.createElement('tr');
          const time = Object.assign(document.createElement('time'), { dateTime: new Date(end - (12 - at) * 15_000).toISOString() });
          const head = document.createElement('th');
          head.append(time);
          const cells = Array.from({ length: columns }, () =>
            Object.assign(document.createElement('td'), { textContent: String(20 + at % 2) }));
          row.append(head, ...cells);
          return row;
        }));
        document.dispatchEvent(new Event('fresh'));
      })()`;
      await ask(page, edges);
      const drawn = `(() => {
        const canvas = document.querySelector('#${id} canvas');
        const pen = canvas.getContext('2d');
        const inked = (x) => pen.getImageData(x, 0, 1, canvas.height).data.some((value, at) => at % 4 === 3 && value > 0);
        const all = Array.from({ length: canvas.width }, (_, x) => inked(x));
        return [document.getElementById('${id}').dataset.points, all.includes(true), all[0], all.at(-1)];
      })()`;
      await expect.poll(() => ask(page, drawn)).toEqual(['13', true, false, false]);
    });

    test('follows the colour scheme and the width', async () => {
      const size = page.viewportSize();
      onTestFinished(async () => {
        await page.emulateMedia({ colorScheme: 'light' });
        await page.setViewportSize(size!);
      });
      await charts(page);
      // The accent of each scheme.
      const [light, dark] = ['11,107,92', '102,205,184'];
      const drawn = async () => (await colours(page, 'fees')).filter((colour) => colour === light || colour === dark);
      expect(await drawn()).toEqual([light]);
      await page.emulateMedia({ colorScheme: 'dark' });
      await expect.poll(drawn).toEqual([dark]);
      await page.setViewportSize({ width: 480, height: 800 });
      const widths = `['canvas', '.plot'].map((part) => Math.round(document.querySelector('#fees ' + part).getBoundingClientRect().width))`;
      await expect.poll(async () => new Set(await ask<number[]>(page, widths)).size).toBe(1);
      expect((await ask<number[]>(page, widths))[0]).toBeLessThan(480);
    });

    test('is updated while the page is visible, and not while it is paused', async () => {
      const prepare = async (page: Page) => {
        await page.clock.install();
        await page.addInitScript(WATCH_UPDATES);
      };
      const seen = await visit('/', { reducedMotion: 'no-preference', prepare });
      const { page, observed } = seen;
      await charts(page);
      await stopClock(page);
      await untilUpdated(page);
      const block = () =>
        ask<string>(page, `/Block (\\d+)/.exec(document.querySelector('#fees-summary').textContent)[1]`);
      const before = Number(await block());
      await ask(
        page,
        `window.pulses = 0; document.querySelector('#live-switch').addEventListener('animationstart', () => { pulses += 1; })`,
      );
      await network.mine(3);
      await expect
        .poll(async () => JSON.parse((await service.get('/v1/fees')).body).baseFee.block)
        .toBeGreaterThan(before);
      // The server caches the page for a second.
      await expect.poll(async () => /Block (\d+)/.exec((await service.get('/')).body)?.[1]).not.toBe(String(before));
      await page.clock.fastForward(5000);
      await expect.poll(async () => Number(await block())).toBeGreaterThan(before);
      await expect.poll(() => ask(page, 'pulses')).toBeGreaterThan(0);
      for (const { points, rows } of await figuresOf(page)) expect(Number(points)).toBe(rows);
      // The answer to an update comes after the reader has paused. It changes nothing, not even the dot that shows an update.
      await ask(
        page,
        `document.querySelector('.dot').isOld = true; held = new Promise((go) => { letGo = go; }); undefined`,
      );
      await page.clock.fastForward(5000);
      expect(await ask(page, 'updating')).toBe(1);
      await page.getByRole('button', { name: 'Pause' }).click();
      await ask(page, 'letGo()');
      await untilUpdated(page);
      expect(await ask(page, `document.querySelector('.dot').isOld`)).toBe(true);
      const asked = observed.requests.length;
      await page.clock.fastForward(60_000);
      expect(observed.requests.length).toBe(asked);
      expect(await ask(page, `document.querySelector('#live-switch').textContent`)).toContain('Paused');
      await page.getByRole('button', { name: 'Resume' }).click();
      await expect.poll(() => observed.requests.length).toBe(asked + 1);
      expectQuiet(seen);
    });

    test('does not replace an element that the reader is using', async () => {
      const { page } = await visit('/status', { prepare: ({ clock }) => clock.install() });
      await charts(page);
      const link = page.locator('#runs a').first();
      await link.focus();
      await ask(
        page,
        `document.querySelector('#runs').dataset.mine = 'yes'; document.querySelector('#runs a').dataset.mine = 'yes'`,
      );
      const asOf = () => ask<string>(page, `document.querySelector('.asof').textContent`);
      const before = await asOf();
      const later = async () => {
        await page.clock.fastForward(5000);
        return asOf();
      };
      await expect.poll(later).not.toBe(before);
      expect(await ask(page, `document.activeElement.dataset.mine`)).toBe('yes');
    });

    test('moves nothing for a reader who prefers reduced motion', async () => {
      const dot = `getComputedStyle(document.querySelector('.dot')).animationName`;
      onTestFinished(() => page.emulateMedia({ reducedMotion: 'no-preference' }));
      const moving = await ask(page, dot);
      await page.emulateMedia({ reducedMotion: 'reduce' });
      expect([await ask(page, dot), moving]).toEqual(['none', 'breathe']);
    });

    test('moves for a moment only, so that an open page is not drawn without a pause', async () => {
      const times = `getComputedStyle(document.querySelector('.dot')).animationIterationCount`;
      expect(await ask(page, times)).toBe('1');
    });
  });

  test('without scripts the page shows the lines, the figures and the search', async () => {
    const { body } = await service.get('/');
    const { page } = await visit('/', { javaScript: false });
    expect(await page.locator('#fees .sketch path').count()).toBe(3);
    expect(await page.locator('#fees-rows tr').count()).toBeGreaterThan(0);
    expect(await page.locator('#live-switch').isVisible()).toBe(false);
    expect(await page.locator('.prices tbody tr').count()).toBeGreaterThan(20);
    expect(body).toContain('</html>');
    await page.goto(`${service.origin}/market`);
    await page.getByLabel('What do you need?').fill('wikipedia');
    await page.getByRole('button', { name: 'Search' }).click();
    expect(new URL(page.url()).search).toContain('q=wikipedia');
    expect(await page.locator('.results li').count()).toBeGreaterThan(0);
    expect(await page.locator('#submit-form').isVisible()).toBe(false);
    expect(await page.locator('noscript code').textContent()).toContain('/v1/market');
  });

  describe('the market', () => {
    test('finds the searched routes, within the price', async () => {
      const seen = await visit('/market');
      const { page } = seen;
      await page.getByLabel('What do you need?').fill('gas fee estimate');
      await page.keyboard.press('Enter');
      await page.waitForURL(/q=gas/);
      expect(await page.getByLabel('What do you need?').inputValue()).toBe('gas fee estimate');
      expect(await page.locator('.results h3').first().textContent()).toMatch(/fee/i);
      const usd = String(usdcRoutes()[0]?.price.usd);
      await page.getByLabel('At most, USD').fill(usd);
      await page.getByLabel('Sold by').selectOption('own');
      await page.getByRole('button', { name: 'Search' }).click();
      await page.waitForURL(({ searchParams }) => searchParams.get('maxPriceUsd') === usd);
      const prices = await page.locator('.results .price strong').allTextContents();
      expect(prices.length).toBeGreaterThan(0);
      expect(new Set(prices)).toEqual(new Set([usd]));
      expect(await auditAccessibility(page)).toEqual([]);
      expectQuiet(seen);
    });

    test('can be read whole, page by page, and every route of ours is a link to its form in the reference', async () => {
      const seen = await visit('/market?source=own&limit=15');
      const { page } = seen;
      const links = page.locator('.results h3 a');
      const first = await links.allTextContents();
      expect(await page.locator('#found').textContent()).toMatch(/^1 to 15 of \d+ of \d+ payable routes/);
      await page.getByRole('link', { name: 'Next', exact: true }).click();
      await page.waitForURL(/offset=15/);
      const all = [...first, ...(await links.allTextContents())];
      expect(new Set(all).size).toBe(JSON.parse((await service.get('/v1/market/search')).body).searched.ownRoutes);
      expect(await page.getByRole('link', { name: 'Next', exact: true }).count()).toBe(0);
      const path = (await page.locator('.results .where').first().textContent())?.replace(/^GET https?:\/\/[^/]+/, '');
      await links.first().click();
      await page.waitForURL(/\/docs#/);
      await page.locator('details.op[open] .try').waitFor();
      expect(await page.locator('details.op[open] .path').textContent()).toBe(path);
      expectQuiet(seen);
    });

    test('says that nothing here answers a question, and how to call a route of another seller', async () => {
      const { page } = await visit('/market?q=pizza+delivery');
      expect(await page.locator('#found').textContent()).toBe('Nothing sold here answers pizza delivery.');
      expect(await page.locator('.results li').count()).toBe(0);
      const bad = await visit('/market?limit=0');
      expect(await bad.page.getByRole('alert').textContent()).toContain('limit: a whole number from 1 to 50');
    });

    test('lists a route that is submitted, and shows it', async () => {
      const seen = await visit('/market');
      const { page } = seen;
      await page.getByLabel('Address of a priced route').fill('http://seller.example/weather');
      await page.getByRole('button', { name: 'List it' }).click();
      const result = page.getByRole('status').filter({ hasText: 'Listed: ' });
      await result.waitFor();
      expect(await result.textContent()).toContain('seller.example, 0.002 USD a call');
      await page.getByRole('link', { name: 'Show it in the list' }).click();
      expect(new URL(page.url()).hash).toBe('#listed');
      await page.locator('.listings').waitFor();
      expect(await page.locator('.listings').textContent()).toContain('GET http://seller.example/weather');
      await page.waitForLoadState('networkidle');
      await page.goto(`${service.origin}/market?q=weather`);
      expect(await page.locator('.results').textContent()).toContain('seller.example');
      expect(await page.locator('.results script').count()).toBe(0);
      await page.getByText('How to call it').click();
      expect(await page.locator('.results .code').first().textContent()).toContain(`'http://seller.example/weather'`);
      expect(await auditAccessibility(page)).toEqual([]);
      expectQuiet(seen);
    });

    test('says why a route is not listed', async () => {
      const { page, observed } = await visit('/market');
      for (const [address, reason] of [
        ['http://seller.example/free', '402'],
        ['http://127.0.0.1/', 'url'],
      ] as const) {
        await page.getByLabel('Address of a priced route').fill(address);
        await page.getByRole('button', { name: 'List it' }).click();
        await page.locator('.outcome.bad').filter({ hasText: reason }).waitFor();
        expect(await page.getByRole('button', { name: 'List it' }).isEnabled()).toBe(true);
      }
      expect([observed.pageErrors, observed.cspViolations]).toEqual([[], []]);
    });
  });

  test('code is copied as it is shown', async () => {
    const { page } = await visit('/', { prepare: ({ clock }) => clock.install() });
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    // The button says so for some seconds of the page's clock.
    await stopClock(page);
    await page.locator('[data-copy="read-python"]').click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const shown = await page.locator('#read-python').textContent();
    expect(await ask(page, 'navigator.clipboard.readText()')).toBe(shown);
    expect(shown).toContain(`urlopen('${service.origin}/v1/fees')`);
  });

  test('a price is a link to its route in the reference, opened and filled in', async () => {
    const { page } = await visit('/');
    await page.locator('.prices a', { hasText: '/v1/paid/currency/convert' }).click();
    await page.waitForURL(/\/docs#paidCurrencyConvert$/);
    await page.locator('#paidCurrencyConvert .try').waitFor();
    const values = await page
      .locator('#paidCurrencyConvert .try input')
      .evaluateAll((all) => all.map((one) => (one as unknown as { value: string }).value));
    expect(values.slice(0, 3).every((value) => value !== '')).toBe(true);
  });

  test('the landing page says why to pay, beside a free answer as it is now', async () => {
    const { page } = await visit('/');
    const why = page.getByRole('region', { name: 'Why pay?' });
    const shown = JSON.parse(String(await why.locator('pre').textContent()));
    const { detail, costUsdc } = JSON.parse((await service.get('/v1/fees/estimate')).body);
    expect(shown).toMatchObject({ costUsdc, detail });
    expect(await why.textContent()).toContain(`a paid twin for ${detail.priceUsd} USD. It adds ${detail.adds}.`);
    expect(await why.getByRole('link').getAttribute('href')).toBe('/v1/fees/estimate');
    await network.mine(2);
    const block = async () => JSON.parse(String(await why.locator('pre').textContent())).asOfBlock;
    await expect.poll(block).toBeGreaterThan(shown.asOfBlock);
  });

  test.each([360, 390, 768, 1024, 1280])('/status shows every reason whole in a window of %i pixels', async (width) => {
    const { page } = await visit('/status');
    await page.setViewportSize({ width, height: 800 });
    await ask(page, `document.querySelector('#live-switch button').click()`);
    // The reason of each table's first row, as long as real ones are.
    const reasons = `(() => {
      const reason = 'the node answered 503 at /v1/getinfo: rpc error: code = Unavailable desc = transport: connection refused by 127.0.0.1:8080';
      const state = document.querySelector('#runs tbody td');
      const cells = [...['rails', 'sources'].map((id) => document.querySelector('#' + id + ' tbody tr td:last-child')), state];
      cells[2].className = 'bad loose';
      for (const cell of cells) cell.textContent = reason;
      return cells.map((cell) => {
        const { left, right, width } = cell.getBoundingClientRect();
        const table = cell.closest('.scroll');
        return [left >= 0, right <= innerWidth, width > 150, table.scrollWidth <= table.clientWidth];
      });
    })()`;
    // The chart follows the window's new width in its own time.
    await expect.poll(() => ask(page, 'document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    expect(await ask(page, reasons)).toEqual(Array(3).fill([true, true, true, true]));
    expect(await ask(page, 'document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  });

  test('/status draws the last 30 days by their dates, and counts a call that was just refused', async () => {
    await service.get('/v1/paid/rpc/health', { headers: { 'payment-signature': 'AAAA' } });
    const { page } = await visit('/status');
    await charts(page);
    const drawn = `[...document.querySelectorAll('figure[data-step="day"]')].map((one) => [
      one.id, one.dataset.points, Number(one.dataset.latest) > 0,
      one.querySelector('tbody tr:last-child time').dateTime === one.querySelector('.u-legend .u-value').textContent,
    ])`;
    await expect
      .poll(() => ask(page, drawn))
      .toEqual([
        ['calls', '30', true, true],
        ['revenue', '30', true, true],
        ['sats', '30', false, true],
      ]);
    await expect.poll(() => page.locator('#refused').textContent()).toMatch(/invalid_payload\s*[1-9]/);
  });

  test('/status shows what the ledger holds of today, and the time of the self-test', async () => {
    const { page } = await visit('/status');
    const [recent] = JSON.parse((await service.get('/v1/selftest')).body).recent;
    const row = await page.locator('#settled-usdc').textContent();
    expect(row).toMatch(/^USDC1?\d+0\.\d+ USDC/);
    expect(await page.locator('#runs a').first().getAttribute('href')).toBe(`/v1/payments/${recent.transaction}`);
    // A page that was drawn during a pause says less, until it is updated.
    await expect.poll(() => page.locator('#verdict').textContent()).toContain('Everything works.');
  });
});
