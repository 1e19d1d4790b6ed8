import type { Page } from 'playwright-core';
import decodeQR from 'qr/decode.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedLightning, startEmbeddedLightning } from '../../dev/lightning/lightning.ts';
import { type LightningService, startLightningService } from '../support/lightning/lightning-service.ts';
import { auditAccessibility } from '../support/pages/axe.ts';
import { describeInBrowser } from '../support/pages/browser.ts';
import { moodyEndpoint } from '../support/service/moody-endpoint.ts';

// Payments over Lightning from the reference, with real nodes: by a wallet in the browser (WebLN), and by one elsewhere.

const ROUTE = 'lightningTestMoody';
const { endpoint } = moodyEndpoint();

let lightning: EmbeddedLightning;
let service: LightningService;
beforeAll(async () => {
  lightning = await startEmbeddedLightning();
  service = await startLightningService(lightning, { catalogue: [endpoint] });
});
afterAll(async () => {
  await service?.stop();
  await lightning?.stop();
});

/** WebLN as a wallet's extension puts it into the page. */
const WALLET = `window.webln = { enable: async () => {}, sendPayment: (invoice) => window.payInvoice(invoice) };`;

describeInBrowser('a Lightning payment from the reference', (browser) => {
  const outcome = (page: Page) => page.locator(`#${ROUTE} .outcome`);
  const invoice = (page: Page) => outcome(page).getByRole('region', { name: 'Invoice' });

  async function ask(wallet: ((invoice: string) => Promise<object>) | null, screen: 'phone' | 'desktop' = 'desktop') {
    const visit = await browser.visit(`${service.origin}/docs#${ROUTE}`, {
      screen,
      newProfile: true,
      prepare: async (page) => {
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
        if (wallet === null) return;
        await page.exposeFunction('payInvoice', wallet);
        await page.addInitScript(WALLET);
      },
    });
    await visit.page.locator(`#${ROUTE}`).getByRole('button', { name: 'Try it' }).click();
    await expect.poll(() => outcome(visit.page).locator('.qr').count()).toBe(1);
    return visit;
  }
  const pay = async (bolt11: string) => ({ preimage: await lightning.pay(bolt11) });
  const sold = async (page: Page) => {
    await expect.poll(() => outcome(page).locator('.status').textContent()).toMatch(/^200 /);
    await page.getByRole('region', { name: 'PAYMENT-RESPONSE, decoded' }).waitFor();
    return JSON.parse(String(await outcome(page).locator('pre').first().textContent()));
  };

  test('with a wallet of the browser pays the invoice, presents its proof and shows the answer', async () => {
    const paid: string[] = [];
    const { page, observed } = await ask(async (bolt11) => {
      paid.push(bolt11);
      return pay(bolt11);
    });
    const text = await invoice(page).locator('code').textContent();
    await invoice(page)
      .getByRole('button', { name: /^Pay \d+ sat with this browser’s wallet$/ })
      .click();
    expect(await sold(page)).toMatchObject({ tag: 'none' });
    expect(paid).toEqual([text]);
    await page.getByRole('link', { name: 'Receipt of this payment' }).click();
    await page.waitForURL('**/v1/payments/*');
    expect(await page.locator('main').textContent()).toContain('delivered');
    expect(await page.locator('#bought').textContent()).toContain('GET /v1/lightning/test/moody');
    expect(observed).toMatchObject({ pageErrors: [], cspViolations: [], failedRequests: [] });
    expect(observed.requests.filter((url) => !url.startsWith(`${service.origin}/`))).toEqual([]);
  });

  test('can be made elsewhere: its QR code and its copy are the invoice, and the preimage brings the answer', async () => {
    const { page } = await ask(null, 'phone');
    const text = String(await invoice(page).locator('code').textContent());
    expect(
      await invoice(page)
        .getByRole('button', { name: /wallet/ })
        .count(),
    ).toBe(0);
    expect(readQr(await pixelsOf(page, `#${ROUTE} .qr`)).toLowerCase()).toBe(`lightning:${text}`);
    await invoice(page).getByRole('button', { name: 'Copy the invoice' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(text);
    expect(await invoice(page).getByRole('link', { name: 'Open in a wallet' }).getAttribute('href')).toBe(
      `lightning:${text}`,
    );
    expect(await page.evaluate('document.documentElement.scrollWidth - screen.width')).toBeLessThanOrEqual(0);
    expect(await auditAccessibility(page, { within: `#${ROUTE} .try`, alike: 'details.op' })).toEqual([]);
    await page.getByLabel('The preimage that your wallet shows').fill(await lightning.pay(text));
    await page.getByRole('button', { name: 'Present the proof' }).click();
    expect(await sold(page)).toMatchObject({ tag: 'none' });
  });

  test('whose answer is lost is presented again, and no second invoice is asked for', async () => {
    const { page } = await ask(pay);
    const presented: string[] = [];
    await page.route('**/v1/lightning/test/moody*', async (route) => {
      const proof = route.request().headers()['payment-signature'];
      if (proof !== undefined) presented.push(proof);
      return presented.length === 1 ? route.abort() : route.continue();
    });
    await invoice(page)
      .getByRole('button', { name: /wallet/ })
      .click();
    await outcome(page).getByText('has brought no answer yet').waitFor();
    await page.locator(`#${ROUTE}`).getByRole('button', { name: 'Try it' }).click();
    await page.getByRole('button', { name: 'Present the proof' }).click();
    expect(await sold(page)).toMatchObject({ tag: 'none' });
    expect([presented.length, new Set(presented).size]).toEqual([2, 1]);
  });

  test('made for an invoice that a newer one or a reload has replaced brings the answer of the call it was asked for', async () => {
    const { page } = await ask(null, 'phone');
    const text = String(await invoice(page).locator('code').textContent());
    const tryIt = page.locator(`#${ROUTE}`).getByRole('button', { name: 'Try it' });
    // The same call has this invoice still, another call another one.
    await page.reload();
    await tryIt.click();
    await expect.poll(() => invoice(page).locator('code').textContent()).toBe(text);
    await page.locator(`#${ROUTE} [name="tag"]`).fill('other');
    await tryIt.click();
    await expect.poll(() => invoice(page).locator('code').textContent()).not.toBe(text);
    const field = page.getByLabel('The preimage that your wallet shows');
    const send = page.getByRole('button', { name: 'Present the proof' });
    await field.fill('0'.repeat(64));
    await send.click();
    const said = () => field.evaluate((one) => (one as unknown as { validationMessage: string }).validationMessage);
    await expect.poll(said).toContain('belongs to no invoice that was shown here');
    await field.fill(await lightning.pay(text));
    await send.click();
    expect(await sold(page)).toMatchObject({ tag: 'none' });
    // What has brought its answer is not shown again.
    await page.reload();
    await tryIt.click();
    await expect.poll(() => invoice(page).locator('code').count()).toBe(1);
    expect(await invoice(page).locator('code').textContent()).not.toBe(text);
  });

  test('that the wallet declines leaves the invoice where it is', async () => {
    const { page } = await ask(() => Promise.reject(new Error('User cancelled')));
    await invoice(page)
      .getByRole('button', { name: /wallet/ })
      .click();
    await invoice(page).getByRole('alert').filter({ hasText: 'User cancelled' }).waitFor();
    expect(await outcome(page).locator('.qr').count()).toBe(1);
  });
});

/** A drawing as it is on the screen, in RGBA. */
async function pixelsOf(page: Page, selector: string): Promise<{ width: number; height: number; data: number[] }> {
  const png = (await page.locator(selector).screenshot()).toString('base64');
  return page.evaluate(`(async () => {
    const picture = new Image();
    picture.src = 'data:image/png;base64,${png}';
    await picture.decode();
    const { width, height } = picture;
    const canvas = Object.assign(document.createElement('canvas'), { width, height });
    const drawing = canvas.getContext('2d');
    drawing.drawImage(picture, 0, 0);
    return { width, height, data: [...drawing.getImageData(0, 0, width, height).data] };
  })()`);
}

function readQr({ width, height, data }: { width: number; height: number; data: number[] }): string {
  return decodeQR({ width, height, data: Uint8ClampedArray.from(data) });
}
