import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { auditAccessibility } from '../support/pages/axe.ts';
import { describeInBrowser, type Visit } from '../support/pages/browser.ts';
import { addWallet, type WalletCalls } from '../support/pages/wallet.ts';
import { priceOf } from '../support/prices.ts';
import { type Service, startService } from '../support/service/service.ts';
import { balanceOf } from '../support/usdc/buyer.ts';

// Payments from the reference and from the page of a 402, on the embedded network: a wallet that really signs, and the
// demo's own buyer.

const ROUTE = 'paidChainWallet';
const { usd: USD, units: PRICE } = priceOf('/chain/wallet');
const PUBLIC_RPC = 'https://rpc.example';

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  const env = { ...embeddedEnvironment(network, { demoBuyer: true }), WALLET_RPC_URLS: PUBLIC_RPC };
  service = await startService(network, { env: { ...env, EXPLORER_URL: 'https://explorer.example' } });
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

describeInBrowser('a payment from the reference', (browser) => {
  /** Opens the route with a wallet in the browser. */
  async function open(
    wallet: { chainId?: number; declines?: readonly string[]; added?: { chainId: string }[] } = {},
    options: Parameters<typeof browser.visit>[1] = {},
  ) {
    let calls: WalletCalls = [];
    const visit = await browser.visit(`${service.origin}/docs#${ROUTE}`, {
      ...options,
      prepare: async (page) => {
        calls = await addWallet(page, { privateKey: network.buyer.privateKey, chainId: network.chainId, ...wallet });
      },
    });
    await payButton(visit.page, 'Test wallet').waitFor();
    return { ...visit, calls };
  }
  const payButton = (page: Page, payer: string) =>
    page.locator(`#${ROUTE}`).getByRole('button', { name: `Pay ${USD} USDC with ${payer}` });
  const outcome = (page: Page) => page.locator(`#${ROUTE} .outcome`);
  /** Checks the form with what a payment shows in it. The rest of the page is checked where nothing is paid. */
  const audit = (page: Page) => auditAccessibility(page, { within: `#${ROUTE} .try`, alike: 'details.op' });
  const sellerHas = () => balanceOf(network, network.seller);

  function expectQuiet({ observed }: Pick<Visit, 'observed'>): void {
    expect(observed).toMatchObject({ pageErrors: [], cspViolations: [], failedRequests: [] });
    // The browser logs the unpaid 402 itself.
    expect(observed.consoleErrors.filter((line) => !line.includes('status of 402'))).toEqual([]);
    expect(observed.requests.filter((url) => !url.startsWith(`${service.origin}/`))).toEqual([]);
  }

  test('with a wallet buys one answer for exactly the price, and shows it with its receipt', async () => {
    const before = await sellerHas();
    const { page, observed, calls } = await open({ chainId: 1 });
    await payButton(page, 'Test wallet').click();
    const receipt = page.getByRole('region', { name: 'PAYMENT-RESPONSE, decoded' });
    await receipt.waitFor();
    expect(await receipt.textContent()).toContain(`${USD} USDC (${PRICE} base units)`);
    expect(JSON.parse(String(await outcome(page).locator('pre').last().textContent()))).toHaveProperty(
      'transactionsSent',
    );
    expect((await sellerHas()) - before).toBe(PRICE);
    // The wallet was on another chain.
    expect(calls).toEqual(['eth_requestAccounts', 'eth_chainId', 'wallet_switchEthereumChain', 'eth_signTypedData_v4']);
    expect(await audit(page)).toEqual([]);

    await page.getByRole('link', { name: 'Receipt of this payment' }).click();
    await page.waitForURL('**/v1/payments/0x*');
    expect(await page.locator('h1').textContent()).toBe('Receipt');
    const shown = await page.locator('main').textContent();
    expect(shown).toContain(`${USD} USDC`);
    expect(shown).toContain('settled. The payment was taken, and its answer was sold.');
    expect(await page.locator('#bought').textContent()).toContain('GET /v1/paid/chain/wallet?address=');
    const transaction = (await page.locator('.payment code').textContent()) ?? '';
    expect(await network.rpc('eth_getTransactionReceipt', [transaction])).toMatchObject({ status: '0x1' });
    expect(await auditAccessibility(page)).toEqual([]);
    expectQuiet({ observed });

    const other = await browser.visit(`${service.origin}/v1/payments/${transaction}`, {
      screen: 'phone',
      colorScheme: 'dark',
    });
    expect(await other.page.locator('#bought').textContent()).toContain('does not say it');
    expect(await other.page.evaluate('document.documentElement.scrollWidth - screen.width')).toBeLessThanOrEqual(0);
    expect(await auditAccessibility(other.page)).toEqual([]);
    expect(await other.page.locator('main').textContent()).not.toContain('/v1/paid');
  });

  test('whose answer is lost is presented again, and paid once', async () => {
    const before = await sellerHas();
    const { page } = await open();
    let presented = 0;
    await page.route('**/v1/paid/chain/wallet*', async (route) => {
      if (route.request().headers()['payment-signature'] === undefined) return route.continue();
      presented += 1;
      if (presented > 1) return route.continue();
      await route.fetch();
      return route.abort();
    });
    await payButton(page, 'Test wallet').click();
    await page.getByRole('button', { name: 'Present the same payment again' }).click();
    await page.getByRole('region', { name: 'PAYMENT-RESPONSE, decoded' }).waitFor();
    expect(presented).toBe(2);
    expect((await sellerHas()) - before).toBe(PRICE);
  });

  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64');
  /** The header fields of a 402, and those of a 402 after a settlement that moved nothing. */
  const refusedFor = (error: string) => ({ 'payment-required': encoded({ x402Version: 2, error, accepts: [] }) });
  const unsettledFor = (errorReason: string) => ({
    ...refusedFor(errorReason),
    'payment-response': encoded({ success: false, errorReason, transaction: '', network: 'eip155:5042' }),
  });

  /** Answers the first presentations of a payment with a 402. Returns the presented payments. */
  async function refuse(
    page: Page,
    times: number,
    headers: Record<string, string> = unsettledFor('invalid_exact_evm_transaction_failed'),
  ): Promise<string[]> {
    const presented: string[] = [];
    await page.route('**/v1/paid/chain/wallet*', async (route) => {
      const payment = route.request().headers()['payment-signature'];
      if (payment === undefined) return route.continue();
      presented.push(payment);
      if (presented.length > times) return route.continue();
      return route.fulfill({ status: 402, headers, json: { hint: 'Present it again, or do not.' } });
    });
    return presented;
  }

  test('that a 402 refuses can be presented again, has a receipt, and is paid once', async () => {
    const before = await sellerHas();
    const { page, calls } = await open();
    const presented = await refuse(page, 1);
    await payButton(page, 'Test wallet').click();
    await page.getByRole('link', { name: 'Receipt of this payment' }).waitFor();
    expect(await audit(page)).toEqual([]);
    await page.getByRole('button', { name: 'Present the same payment again' }).click();
    await page.getByRole('region', { name: 'PAYMENT-RESPONSE, decoded' }).waitFor();
    expect(presented).toHaveLength(2);
    expect(new Set(presented).size).toBe(1);
    expect(calls.filter((method) => method === 'eth_signTypedData_v4')).toHaveLength(1);
    expect((await sellerHas()) - before).toBe(PRICE);
    expect(await page.getByRole('button', { name: 'Present the same payment again' }).count()).toBe(0);
  });

  test('that a 402 refuses is not followed by a second signature before the reader chooses it', async () => {
    const { page, calls } = await open();
    const presented = await refuse(page, 1);
    const signed = () => calls.filter((method) => method === 'eth_signTypedData_v4').length;
    await payButton(page, 'Test wallet').click();
    await page.getByRole('button', { name: 'Present the same payment again' }).waitFor();
    await payButton(page, 'Test wallet').click();
    await outcome(page).getByText('If you sign another payment, both may be taken.').waitFor();
    expect([signed(), presented.length]).toEqual([1, 1]);
    expect(await page.getByRole('button', { name: 'Present the same payment again' }).count()).toBe(1);
    expect(await audit(page)).toEqual([]);
    await page.getByRole('button', { name: 'Sign another payment' }).click();
    await page.getByRole('region', { name: 'PAYMENT-RESPONSE, decoded' }).waitFor();
    expect(signed()).toBe(2);
    expect(new Set(presented).size).toBe(2);
  });

  test.each(['eth_requestAccounts', 'wallet_switchEthereumChain', 'eth_signTypedData_v4'])(
    'is not made when the user declines %s, and the page says so',
    async (method) => {
      const before = await sellerHas();
      const { page } = await open({ chainId: 1, declines: [method] });
      await payButton(page, 'Test wallet').click();
      await outcome(page).locator('.bad').filter({ hasText: 'User rejected the request.' }).waitFor();
      expect(await sellerHas()).toBe(before);
      expect(await payButton(page, 'Test wallet').isEnabled()).toBe(true);
    },
  );

  test('with a wallet that lacks the chain adds it, with a public RPC URL alone', async () => {
    const added: { chainId: string }[] = [];
    const { page, calls } = await open({ chainId: 1, added });
    await payButton(page, 'Test wallet').click();
    await page.getByRole('region', { name: 'PAYMENT-RESPONSE, decoded' }).waitFor();
    expect(calls.filter((method) => method.startsWith('wallet_'))).toEqual([
      'wallet_switchEthereumChain',
      'wallet_addEthereumChain',
      'wallet_switchEthereumChain',
    ]);
    expect(added).toEqual([
      {
        chainId: '0x13b2',
        chainName: 'Arc',
        rpcUrls: [PUBLIC_RPC],
        nativeCurrency: { name: 'USDC', symbol: 'USDC', decimals: 18 },
        blockExplorerUrls: ['https://explorer.example'],
      },
    ]);
    const data = `document.querySelector('[data-chain]').dataset.chain`;
    expect(await page.evaluate(data)).not.toContain(network.rpcUrl);
    expect(await page.locator('#money').textContent()).toContain('the demo’s buyer has it');
    expect(await page.locator('#money a').count()).toBe(0);
  });

  test('is not signed when the 402 asks for more than the listed price', async () => {
    const { page, calls } = await open();
    await page.route('**/v1/paid/chain/wallet*', async (route) => {
      const response = await route.fetch();
      const terms = JSON.parse(Buffer.from(String(response.headers()['payment-required']), 'base64').toString());
      for (const way of terms.accepts) way.amount = String(PRICE + 1n);
      const header = Buffer.from(JSON.stringify(terms)).toString('base64');
      await route.fulfill({ response, headers: { ...response.headers(), 'payment-required': header } });
    });
    await payButton(page, 'Test wallet').click();
    await outcome(page)
      .locator('.bad')
      .filter({ hasText: `more than the listed ${PRICE}. Nothing was signed.` })
      .waitFor();
    expect(calls).toEqual([]);
  });

  test('of a call that fails costs nothing', async () => {
    const before = await sellerHas();
    const { page } = await open();
    await page.locator(`#${ROUTE}-address`).fill('0x12');
    await payButton(page, 'Test wallet').click();
    await expect.poll(() => outcome(page).textContent()).toMatch(/^400 .*"charged": false/s);
    expect(await sellerHas()).toBe(before);
  });

  /** Answers the first presentation of a payment with a problem. */
  async function fail(page: Page, status: number, problem: object): Promise<void> {
    let failed = false;
    await page.route('**/v1/paid/chain/wallet*', async (route) => {
      if (failed || route.request().headers()['payment-signature'] === undefined) return route.continue();
      failed = true;
      return route.fulfill({ status, contentType: 'application/problem+json', json: problem });
    });
  }
  const links = (page: Page) => page.getByRole('link', { name: 'Receipt of this payment' }).count();
  const again = (page: Page) => page.getByRole('button', { name: 'Present the same payment again' }).count();

  test.each([
    ['a settlement that a third party’s reason ended', unsettledFor('insufficient_funds'), true],
    ['a payment that was used before', refusedFor('payment_already_used'), true],
    ['a reason that cannot be read', {}, true],
    ['a payment that was not tried', refusedFor('invalid_exact_evm_insufficient_balance'), false],
  ])('that a 402 refuses for %s stays open only if money may move', async (_what, headers, isOpen) => {
    const { page } = await open();
    await refuse(page, 1, headers);
    await payButton(page, 'Test wallet').click();
    const said = isOpen ? 'It is not known whether this was charged.' : 'Not charged.';
    await outcome(page).getByText(said).waitFor();
    expect([await links(page), await again(page)]).toEqual(isOpen ? [1, 1] : [0, 0]);
  });

  test.each([400, 502])('that an uncharged %s answers is said to be not charged, and is over', async (status) => {
    const before = await sellerHas();
    const { page, calls } = await open();
    await fail(page, status, { status, detail: 'It went wrong.', charged: false });
    await payButton(page, 'Test wallet').click();
    await outcome(page).getByText('Not charged', { exact: false }).waitFor();
    expect([await links(page), await again(page)]).toEqual([0, 0]);
    expect(await audit(page)).toEqual([]);
    // Nothing is open, so the next call is signed without a question.
    await payButton(page, 'Test wallet').click();
    await page.getByRole('region', { name: 'PAYMENT-RESPONSE, decoded' }).waitFor();
    expect(calls.filter((method) => method === 'eth_signTypedData_v4')).toHaveLength(2);
    expect((await sellerHas()) - before).toBe(PRICE);
  });

  test.each([
    ['does not know whether it was taken', { detail: 'The outcome is not known.', charged: 'unknown' }, 1],
    ['is uncharged and for now alone', { code: 'unknown_payments', detail: 'Others first.', charged: false }, 0],
  ])('can be presented again where the error %s', async (_what, problem, receipts) => {
    const { page } = await open();
    await fail(page, 429, { status: 429, ...problem });
    await payButton(page, 'Test wallet').click();
    await page.getByRole('button', { name: 'Present the same payment again' }).waitFor();
    expect(await links(page)).toBe(receipts);
    expect(await outcome(page).getByText('Not charged', { exact: false }).count()).toBe(1 - receipts);
  });

  test('is over where the error speaks of another payment', async () => {
    const { page } = await open();
    const detail = 'this payment identifier belongs to another payment: present that one again, or take a new one';
    await fail(page, 409, { status: 409, code: 'payment_identifier_conflict', detail, charged: false });
    await payButton(page, 'Test wallet').click();
    await outcome(page).getByText('Not charged.').waitFor();
    expect([await links(page), await again(page)]).toEqual([0, 0]);
  });

  test('shows on a phone the answer first, inside the window, and one receipt below it', async () => {
    const { page } = await open({}, { screen: 'phone' });
    await payButton(page, 'Test wallet').click();
    const receipt = page.getByRole('region', { name: 'PAYMENT-RESPONSE, decoded' });
    await receipt.waitFor();
    const look = `(() => {
      const part = document.querySelector('#${ROUTE} .outcome');
      const [answer, receipt] = [part.querySelector('pre'), part.querySelector('.payment')];
      const { top, bottom } = answer.getBoundingClientRect();
      return [part.querySelectorAll('pre').length, answer.textContent.includes('transactionsSent'), top >= 0, Math.floor(bottom) <= innerHeight,
        (answer.compareDocumentPosition(receipt) & Node.DOCUMENT_POSITION_FOLLOWING) > 0];
    })()`;
    // The page scrolls smoothly, and ends at a whole pixel.
    await expect.poll(() => page.evaluate(look)).toEqual([1, true, true, true, true]);
    const [transaction = ''] = /0x[0-9a-f]{64}/.exec(String(await receipt.textContent())) ?? [];
    expect(String(await outcome(page).textContent()).split(transaction)).toHaveLength(2);
    expect([await links(page), await receipt.getByRole('link').count()]).toEqual([1, 1]);
    expect(await audit(page)).toEqual([]);
  });

  test('with the demo’s buyer needs no wallet', async () => {
    const before = await sellerHas();
    const visit = await browser.visit(`${service.origin}/docs#${ROUTE}`);
    await payButton(visit.page, 'the demo’s buyer').click();
    await visit.page.getByRole('region', { name: 'PAYMENT-RESPONSE, decoded' }).waitFor();
    expect((await sellerHas()) - before).toBe(PRICE);
    expectQuiet(visit);
  });
});

describeInBrowser('a payment from the page of a 402', (browser) => {
  const path = () => `/v1/paid/chain/wallet?address=${network.usdc}`;
  const sellerHas = () => balanceOf(network, network.seller);
  const payButton = (page: Page, payer: string) => page.getByRole('button', { name: `Pay ${USD} USDC with ${payer}` });
  const receiptOf = (page: Page) => page.getByRole('region', { name: 'PAYMENT-RESPONSE, decoded' });
  const answerOn = async (page: Page) => JSON.parse(String(await page.locator('.outcome > pre').textContent()));
  const open = async (options: Parameters<typeof browser.visit>[1] = {}) => {
    let calls: WalletCalls = [];
    const prepare = async (page: Page) => {
      calls = await addWallet(page, { privateKey: network.buyer.privateKey, chainId: network.chainId });
    };
    const visit = await browser.visit(`${service.origin}${path()}`, { ...options, prepare });
    await payButton(visit.page, 'Test wallet').waitFor();
    return { ...visit, calls };
  };
  const expectQuiet = ({ observed }: Pick<Visit, 'observed'>) => {
    expect(observed).toMatchObject({ pageErrors: [], cspViolations: [], failedRequests: [] });
    // The browser logs the 402s itself.
    expect(observed.consoleErrors.filter((line) => !line.includes('status of 402'))).toEqual([]);
    expect(observed.requests.filter((url) => !url.startsWith(`${service.origin}/`))).toEqual([]);
  };

  test('is made by one press of the button and by nothing else, and shows the answer with its receipt', async () => {
    const before = await sellerHas();
    const { page, observed, calls } = await open();
    expect(await auditAccessibility(page)).toEqual([]);
    await page.getByRole('button', { name: 'Check the price' }).click();
    await page.getByRole('region', { name: 'PAYMENT-REQUIRED, decoded' }).waitFor();
    expect([calls, (await sellerHas()) - before]).toEqual([[], 0n]);
    await payButton(page, 'Test wallet').click();
    await receiptOf(page).waitFor();
    expect(await receiptOf(page).textContent()).toContain(`${USD} USDC (${PRICE} base units)`);
    expect((await answerOn(page)).address).toBe(network.usdc.toLowerCase());
    expect((await sellerHas()) - before).toBe(PRICE);
    expect(calls).toEqual(['eth_requestAccounts', 'eth_chainId', 'eth_signTypedData_v4']);
    expect(await auditAccessibility(page)).toEqual([]);
    await page.getByRole('link', { name: 'Receipt of this payment' }).click();
    await page.locator('#bought').getByText(`GET ${path()}`).waitFor();
    expectQuiet({ observed });
  });

  test('with the demo’s buyer, on a phone in the dark, buys what the form says by then', async () => {
    const before = await sellerHas();
    const { page, observed } = await open({ screen: 'phone', colorScheme: 'dark' });
    await page.getByLabel('address').fill(network.seller);
    // The code follows the form.
    await page.locator('#code-percall').getByText(`address=${network.seller}'`).waitFor();
    await payButton(page, 'the demo’s buyer').click();
    await receiptOf(page).waitFor();
    expect((await answerOn(page)).address).toBe(network.seller.toLowerCase());
    expect((await sellerHas()) - before).toBe(PRICE);
    await page.getByText('All of it as JSON').click();
    expect(await page.evaluate('document.documentElement.scrollWidth - screen.width')).toBeLessThanOrEqual(0);
    expect(await auditAccessibility(page)).toEqual([]);
    expectQuiet({ observed });
  });

  test('needs no scripts: the page says how a program pays, and its form asks for other values', async () => {
    const { page, observed } = await browser.visit(`${service.origin}/v1/paid/chain/wallet`, { javaScript: false });
    expect(await page.locator('#fault').textContent()).toContain('address');
    expect(await page.getByRole('button').allTextContents()).toEqual(['Check the price']);
    await page.getByLabel('address').fill(network.usdc);
    await page.getByRole('button', { name: 'Check the price' }).click();
    await page.waitForURL(`**${path()}`);
    expect(await page.locator('#fault').count()).toBe(0);
    expect(await page.locator('#code-percall').textContent()).toContain(`pay '${service.origin}${path()}'`);
    await page.getByRole('link', { name: 'with a program' }).click();
    await page.waitForURL('**#programs');
    expectQuiet({ observed });
  });
});

describe('a receipt', () => {
  test('is JSON for every client but a browser', async () => {
    const unknown = `/v1/payments/0x${'00'.repeat(32)}`;
    expect((await service.get(unknown)).headers['content-type']).toContain('application/problem+json');
    expect((await service.get(unknown, { headers: { accept: 'text/html' } })).body).toContain('<h1>Not found</h1>');
  });
});
