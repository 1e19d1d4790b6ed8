import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { ENV } from '../http/harness.ts';
import { auditAccessibility } from '../support/pages/axe.ts';
import { describeInBrowser, type Observed } from '../support/pages/browser.ts';
import { priceOf } from '../support/prices.ts';
import { type Service, serviceWith } from '../support/service/service.ts';

interface Operation {
  readonly operationId: string;
  readonly 'x-payment-info'?: { readonly price: { readonly amount: string } };
}

/** Routes that need no chain behind the service. */
const FREE = 'marketSearch';
const PRICED = 'paidPackagesVulns';
/** Bytes transferred until the page is loaded. */
const MAX_BYTES = 80_000;

describeInBrowser('/docs', (browser) => {
  let service: Service;
  beforeAll(async () => {
    service = await serviceWith({ ...ENV, COLLECTOR: 'off' }, {});
  });
  afterAll(() => service.stop());

  const open = async (operation: string, options = {}) => {
    const visit = await browser.visit(`${service.origin}/docs#${operation}`, options);
    await tryButton(visit.page, operation).waitFor();
    return visit;
  };
  const expectClean = ({ requests, ...observed }: Observed, consoleErrors: unknown[] = []) => {
    expect(observed).toMatchObject({ consoleErrors, pageErrors: [], cspViolations: [], failedRequests: [] });
    expect(requests.filter((url) => !url.startsWith(`${service.origin}/`))).toEqual([]);
  };

  test.each([true, false])(
    'shows every operation of the live document with its price (scripts: %s)',
    async (javaScript) => {
      const { page, observed } = await browser.visit(`${service.origin}/docs`, { newProfile: true, javaScript });
      const document = JSON.parse((await service.get('/openapi.json')).body);
      const expected = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, { 'x-payment-info': payment }]) =>
          [method.toUpperCase(), path, payment && `${payment.price.amount} USD`].filter(Boolean).join(' '),
        ),
      );
      expect(expected.length).toBeGreaterThan(60);
      const parts = page.locator('details.op > summary :is(.method, .path, .op-price)');
      // A method before a path begins the next operation.
      const shown = (await parts.allTextContents()).join(' ').split(/ (?=[A-Z]+ \/)/);
      expect(shown.sort()).toEqual(expected.sort());
      expect(observed.transferredBytes).toBeGreaterThan(3000);
      expect(observed.transferredBytes).toBeLessThan(MAX_BYTES);
      expectClean(observed);
    },
  );

  test('without scripts a route opens, its form leads to the answer, and the search finds it', async () => {
    const { page } = await browser.visit(`${service.origin}/docs`, { javaScript: false });
    await page.locator(`#${FREE} > summary`).click();
    await page.locator(`#${FREE}-q`).waitFor();
    await page.getByLabel('Find a route').fill('convert');
    await page.getByRole('button', { name: 'Find' }).click();
    expect(new URL(page.url()).search).toBe('?q=convert');
    expect(await page.locator('details.op').count()).toBe(2);
    await page.goto(`${service.origin}/docs`);
    await page.locator('#llms > summary, #priceList > summary').first().click();
    await tryButton(page, 'priceList').click();
    await page.waitForURL('**/v1/paid*');
    expect(JSON.parse(String(await page.locator('pre').textContent())).routes.length).toBeGreaterThan(20);
  });

  test('the search filters while the reader types', async () => {
    const { page, observed } = await browser.visit(`${service.origin}/docs`);
    await page.getByLabel('Find a route').fill('MX lightning');
    await expect.poll(() => page.locator('details.op:visible').count()).toBe(0);
    await page.getByLabel('Find a route').fill('paid dns');
    await expect.poll(() => page.locator('details.op:visible').count()).toBe(1);
    expect(await page.locator('#found').textContent()).toMatch(/^1 of \d+ routes\.$/);
    expect(await page.locator('.group:visible').count()).toBe(2);
    await page.getByLabel('Find a route').fill('free estimate');
    await expect.poll(() => page.locator('details.op:visible .path').allTextContents()).toContain('/v1/fees/estimate');
    await page.getByLabel('Find a route').fill('free');
    await expect.poll(() => page.locator('#group-free details.op:visible').count()).toBeGreaterThan(8);
    const hidden = page.locator('details.op:not(:has(.op-price))[hidden]');
    expect(await hidden.count()).toBe(0);
    await page.getByLabel('Find a route').fill('');
    await expect.poll(() => page.locator('details.op:visible').count()).toBeGreaterThan(60);
    expectClean(observed);
  });

  test('a free route can be found, tried and answered by keyboard alone', async () => {
    const { page, observed } = await browser.visit(`${service.origin}/docs`);
    await page.locator(`#${FREE} > summary`).focus();
    await page.keyboard.press('Enter');
    await tryButton(page, FREE).waitFor();
    await tabTo(page, page.locator(`#${FREE}-q`));
    await page.keyboard.type('dns records');
    await tabTo(page, tryButton(page, FREE));
    await page.keyboard.press('Enter');
    const answer = page.locator(`#${FREE} .outcome pre`);
    await answer.waitFor();
    expect(await page.locator(`#${FREE} .status`).textContent()).toMatch(/^200 /);
    expect(JSON.parse(String(await answer.textContent()))).toMatchObject({ query: 'dns records' });
    expect(await page.locator('#reference-answer').textContent()).toBe('/v1/market/search answered 200.');
    expect(await page.locator('.payment').count()).toBe(0);
    expectClean(observed);
  });

  test('a link opens its route with the values that it gives, and the code follows the fields', async () => {
    const { page } = await browser.visit(`${service.origin}/docs?name=left-pad&ecosystem=pypi#${PRICED}`);
    await tryButton(page, PRICED).waitFor();
    expect(await page.locator(`#${PRICED}-name`).inputValue()).toBe('left-pad');
    const query = '/v1/paid/packages/vulns?name=left-pad&ecosystem=pypi';
    for (const language of ['curl', 'typescript', 'python']) {
      await expect.poll(() => page.locator(`#${PRICED}-${language}`).textContent()).toContain(query);
    }
    await page.locator(`#${PRICED}-name`).fill("it's");
    await expect.poll(() => page.locator(`#${PRICED}-curl`).textContent()).toContain('?name=it%27s&ecosystem=pypi');
    expect(await page.locator('#lightningPackagesVulns-curl').textContent()).not.toContain('it%27s');
  });

  test('the link of a 402’s hint opens the very route that was asked', async () => {
    const { body } = await service.get('/v1/paid/packages/vulns?name=lodash&ecosystem=npm');
    const [link = ''] = /http[^ ]+(?=\.( |$))/.exec(JSON.parse(body).hint) ?? [];
    const { page } = await browser.visit(link);
    await expect
      .poll(() => page.locator('details.op[open] .path').allTextContents())
      .toEqual(['/v1/paid/packages/vulns']);
    await expect.poll(() => page.evaluate(TOP_OF_OPENED)).toBeLessThan(400);
  });

  test('trying a priced route shows its 402 decoded: price, recipient, network and validity', async () => {
    const { page, observed } = await open(PRICED);
    await expect.poll(() => page.evaluate(TOP_OF_OPENED)).toBeLessThan(400);
    await tryButton(page, PRICED).click();
    const shown = page.getByRole('region', { name: 'PAYMENT-REQUIRED, decoded' });
    await shown.waitFor();
    const price = priceOf('/packages/vulns');
    expect(await factsOf(shown)).toMatchObject({
      Price: `${price.usd} USDC (${price.units} base units)`,
      'Pay to': ENV.SELLER_ADDRESS,
      Network: 'eip155:5042',
      Asset: ENV.USDC_ADDRESS,
      'Valid for': 'at most 7 days 1 minute 40 seconds (604900 s)',
    });
    const { headers } = await service.get('/v1/paid/packages/vulns?name=lodash&ecosystem=npm');
    const asked = JSON.parse(Buffer.from(String(headers['payment-required']), 'base64').toString());
    const decoded = JSON.parse(String(await shown.locator('pre').textContent()));
    expect(decoded.accepts).toEqual(asked.accepts);
    expect(await page.locator('#reference-answer').textContent()).toMatch(
      new RegExp(
        `^/v1/paid/packages/vulns answered 402\\. Price: ${price.usd} USDC .* Pay to: 0x5e.* Network: eip155:5042\\.$`,
      ),
    );
    // The browser logs a failed request itself; the page cannot prevent that.
    expectClean(observed, [expect.stringContaining('status of 402')]);
  });

  test('a receipt that comes with an answer is shown decoded', async () => {
    const { page, observed } = await open(FREE);
    const receipt = { success: true, transaction: `0x${'ab'.repeat(32)}`, network: 'eip155:5042', amount: '500' };
    await page.route('**/v1/market/search*', async (route) => {
      const response = await route.fetch();
      const header = Buffer.from(JSON.stringify(receipt)).toString('base64');
      await route.fulfill({ response, headers: { ...response.headers(), 'payment-response': header } });
    });
    await tryButton(page, FREE).click();
    const shown = page.getByRole('region', { name: 'PAYMENT-RESPONSE, decoded' });
    await shown.waitFor();
    expect(await factsOf(shown)).toMatchObject({ Settled: 'yes', Transaction: receipt.transaction });
    expectClean(observed);
  });

  // The pages' suite checks the rest of the document, on both screens.
  const OPENED = ['marketSubmit', 'freeFees', 'lightningFeesEstimate', 'mcp'];
  test.each([
    ['light', 'desktop', `#${PRICED} .try`],
    ['dark', 'phone', [PRICED, ...OPENED].map((id) => `#${id}`).join(', ')],
  ] as const)(
    'has no serious accessibility fault in the %s, on a %s, and fits',
    async (colorScheme, screen, within) => {
      const { page } = await open(PRICED, { colorScheme, screen });
      await tryButton(page, PRICED).click();
      await page.locator('.payment').waitFor();
      for (const id of OPENED) await page.locator(`#${id} > summary`).click();
      expect(await auditAccessibility(page, { within, alike: 'details.op' })).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth - screen.width')).toBeLessThanOrEqual(0);
    },
  );

  test('says where to get USDC, and gives away no RPC URL of the operator', async () => {
    const rpc = 'http://127.0.0.1:1/a-secret-key';
    const real = await serviceWith(
      { ...ENV, NETWORK: 'arc-testnet', CHAIN_ID: '', RPC_URLS: rpc, COLLECTOR: 'off' },
      {},
    );
    onTestFinished(() => real.stop());
    const { page } = await browser.visit(`${real.origin}/docs`);
    const link = page.locator('#money').getByRole('link', { name: 'how to get it' });
    expect(await link.getAttribute('href')).toBe('https://faucet.circle.com');
    expect(await page.locator('#money').textContent()).toContain('USDC on Arc testnet');
    const chain = JSON.parse(String(await page.locator('[data-chain]').getAttribute('data-chain')));
    expect(chain).toMatchObject({
      chainId: '0x4cef52',
      rpcUrls: expect.arrayContaining(['https://rpc.testnet.arc.io']),
    });
    expect((await page.content()).includes('a-secret-key')).toBe(false);
  });

  test('says so when there is no answer', async () => {
    const { page } = await open(FREE);
    await page.route('**/v1/market/search*', (route) => route.abort());
    await tryButton(page, FREE).click();
    await page.locator(`#${FREE} .outcome .bad`).waitFor();
    expect(await tryButton(page, FREE).isEnabled()).toBe(true);
  });
});

const tryButton = (page: Page, operation: string) => page.locator(`#${operation} .try button[type=submit]`);

/** The distance of the opened operation from the top of the window, which shows that the link scrolled to it. */
const TOP_OF_OPENED = `document.querySelector('details.op[open]').getBoundingClientRect().top`;

async function factsOf(region: Locator): Promise<Record<string, string>> {
  const [labels, texts] = await Promise.all([
    region.locator('dt').allInnerTexts(),
    region.locator('dd').allInnerTexts(),
  ]);
  return Object.fromEntries(labels.map((label, index) => [label, texts[index] ?? '']));
}

/** Presses Tab until the element has the focus. Fails after far fewer presses than the page has elements. */
async function tabTo(page: Page, element: Locator): Promise<void> {
  const target = await element.elementHandle();
  for (let presses = 0; presses < 20; presses += 1) {
    await page.keyboard.press('Tab');
    if (await page.evaluate((candidate) => candidate?.matches(':focus'), target)) return;
  }
  throw new Error('20 presses of Tab do not reach it');
}
