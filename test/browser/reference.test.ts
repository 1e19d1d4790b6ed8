import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ENV } from '../http/harness.ts';
import { auditAccessibility } from '../support/pages/axe.ts';
import { describeInBrowser, type Observed } from '../support/pages/browser.ts';
import { type Service, serviceWith } from '../support/service/service.ts';

interface Operation {
  readonly operationId: string;
  readonly tags: readonly [string];
  readonly 'x-payment-info'?: { readonly price: { readonly amount: string } };
}

/** Routes that need no chain behind the service. */
const FREE = 'market-marketSearch';
const PRICED = 'paid-paidPackagesVulns';

describeInBrowser('/docs', (browser) => {
  let service: Service;
  beforeAll(async () => {
    service = await serviceWith({ ...ENV, COLLECTOR: 'off' }, {});
  });
  afterAll(() => service.stop());

  const open = async (operation: string, options = {}) => {
    const visit = await browser.visit(`${service.origin}/docs#/${operation.replace('-', '/')}`, options);
    await execute(visit.page, operation).waitFor();
    return visit;
  };
  const expectClean = ({ requests, ...observed }: Observed, consoleErrors: unknown[] = []) => {
    expect(observed).toMatchObject({ consoleErrors, pageErrors: [], cspViolations: [], failedRequests: [] });
    expect(requests.filter((url) => !url.startsWith(`${service.origin}/`))).toEqual([]);
  };

  test('shows every operation of the live document with the price that it states', async () => {
    const { page, observed } = await browser.visit(`${service.origin}/docs`);
    await page.locator('.opblock').first().waitFor();
    const document = JSON.parse((await service.get('/openapi.json')).body);
    const expected = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { 'x-payment-info': payment }]) =>
        [method.toUpperCase(), path, payment && `${payment.price.amount} USD`].filter(Boolean).join(' '),
      ),
    );
    expect(expected.length).toBeGreaterThan(60);
    const shown: string[] = await page.evaluate(HEADLINES);
    expect(shown.sort()).toEqual(expected.sort());
    expectClean(observed);
  });

  test('a free route can be found, tried and answered by keyboard alone', async () => {
    const { page, observed } = await browser.visit(`${service.origin}/docs`);
    await page.locator(`#operations-${FREE} .opblock-summary-control`).focus();
    await page.keyboard.press('Enter');
    await execute(page, FREE).waitFor();
    await tabTo(page, page.locator(`#operations-${FREE} input[placeholder=q]`));
    await page.keyboard.type('dns records');
    await tabTo(page, execute(page, FREE));
    await page.keyboard.press('Enter');
    const answer = page.locator(`#operations-${FREE} .live-responses-table .response`);
    await answer.waitFor();
    expect(await answer.locator('.response-col_status').textContent()).toContain('200');
    expect(JSON.parse(String(await answer.locator('pre').first().textContent()))).toMatchObject({
      query: 'dns records',
    });
    expect(await page.getByRole('status').textContent()).toBe('/v1/market/search answered 200.');
    expect(await page.locator('.payment').count()).toBe(0);
    expectClean(observed);
  });

  test('trying a priced route shows its 402 decoded: price, recipient, network and validity', async () => {
    const { page, observed } = await open(PRICED);
    await expect.poll(() => page.evaluate(TOP_OF_OPENED)).toBeLessThan(400);
    await execute(page, PRICED).click();
    // The reference of the operation is resolved: all problems have one schema.
    const problem = page.locator(`#operations-${PRICED} .response[data-code="400"] pre`);
    expect(JSON.parse(String(await problem.textContent()))).toMatchObject({ code: 'bad_parameter', charged: false });
    const shown = page.getByRole('region', { name: 'PAYMENT-REQUIRED, decoded' });
    await shown.waitFor();
    expect(await factsOf(shown)).toMatchObject({
      Price: '0.004 USDC (4000 base units)',
      'Pay to': ENV.SELLER_ADDRESS,
      Network: 'eip155:5042',
      Asset: ENV.USDC_ADDRESS,
      'Valid for': 'at most 7 days 1 minute 40 seconds (604900 s)',
      Reason: 'Payment required',
    });
    const { headers } = await service.get('/v1/paid/packages/vulns?name=lodash&ecosystem=npm');
    const asked = JSON.parse(Buffer.from(String(headers['payment-required']), 'base64').toString());
    const decoded = JSON.parse(String(await shown.locator('pre').textContent()));
    expect(decoded.accepts).toEqual(asked.accepts);
    expect(await page.getByRole('status').textContent()).toMatch(
      /^\/v1\/paid\/packages\/vulns answered 402\. Price: 0\.004 USDC .* Pay to: 0x5e.* Network: eip155:5042\.$/,
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
    await execute(page, FREE).click();
    const shown = page.getByRole('region', { name: 'PAYMENT-RESPONSE, decoded' });
    await shown.waitFor();
    expect(await factsOf(shown)).toMatchObject({ Settled: 'yes', Transaction: receipt.transaction });
    expectClean(observed);
  });

  test.each([
    ['light', 'desktop'],
    ['dark', 'phone'],
  ] as const)('has no serious accessibility fault in the %s, on a %s, and fits', async (colorScheme, screen) => {
    const { page } = await open(PRICED, { colorScheme, screen });
    await execute(page, PRICED).click();
    await page.locator('.payment').waitFor();
    // Unfolds the schemas of an answer and of a body.
    await page.locator(`#operations-${PRICED} [data-name=model]`).first().click();
    await page.locator(`#operations-${PRICED} .json-schema-2020-12-expand-deep-button`).first().click();
    await page.locator('#operations-market-marketSubmit .opblock-summary-control').click();
    await page.locator('#operations-market-marketSubmit textarea').waitFor();
    expect(await auditAccessibility(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
  });

  test('says so when the reference cannot be drawn, and links to other documents without scripts', async () => {
    const { page } = await browser.visit(`${service.origin}/docs`, { javaScript: false });
    expect(await page.locator('main').textContent()).toContain('/llms.txt as text');
    expect(await page.locator('#reference').isVisible()).toBe(false);
    const other = await browser.visit(`${service.origin}/status`);
    await other.page.route('**/openapi.json', (route) => route.fulfill({ status: 503 }));
    await other.page.goto(`${service.origin}/docs`);
    await other.page.getByText('The reference cannot be drawn: /openapi.json answered 503.').waitFor();
  });
});

const execute = (page: Page, operation: string) => page.locator(`#operations-${operation} .execute`);

/** The distance of the opened operation from the top of the window, which shows that the link scrolled to it. */
const TOP_OF_OPENED = `document.querySelector('.opblock.is-open').getBoundingClientRect().top`;

/** Method, path and price of every operation, as its folded headline shows them. */
const HEADLINES = `[...document.querySelectorAll('.opblock-summary-control')].map((summary) =>
  [...summary.querySelectorAll('.opblock-summary-method, .opblock-summary-path, .operation-price')]
    .map((part) => part.textContent).join(' '))`;

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
