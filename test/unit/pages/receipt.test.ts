import { describe, expect, test } from 'vitest';
import { renderReceipt } from '../../../src/pages/receipt.ts';
import type { FoundPayment } from '../../../src/payment/lookup.ts';

const CONFIG = {
  publicOrigin: 'https://us.example',
  network: { name: 'Arc', isPlayMoney: false },
  web: { contactUrl: null },
  site: { sourceUrl: null, termsUrl: null },
};
const HASH = `0x${'ab'.repeat(32)}`;
const payment: FoundPayment = {
  ...{ rail: 'usdc', protocol: 'x402', amount: '2000', state: 'settled', transaction: HASH, block: 7 },
  ...{ at: 1_800_000_000, explorerUrl: `https://explorer.example/tx/${HASH}` },
};
const main = (...payments: Partial<FoundPayment>[]) =>
  /<main[\s\S]*<\/main>/.exec(
    renderReceipt(
      CONFIG,
      HASH,
      payments.map((one) => ({ ...payment, ...one })),
    ),
  )?.[0] ?? '';

describe('a receipt', () => {
  test('says the amount, the state, the time, the rail, and leads to the explorer', () => {
    const page = main({});
    expect(page).toContain('<strong>0.002 USDC</strong>');
    expect(page).toContain('<strong>settled</strong>. The payment was taken');
    expect(page).toContain('2027-01-15 08:00:00');
    expect(page).toContain('in USDC on Arc by x402');
    expect(page).toContain(`<a href="https://explorer.example/tx/${HASH}"`);
    expect(page).toContain('AuthorizationUsed');
    expect(page).not.toContain('preimage');
  });

  test('of a Lightning payment is in sats and is proved by the preimage', () => {
    const page = main({
      rail: 'lightning',
      amount: '21500',
      state: 'delivered',
      block: null,
      explorerUrl: null,
      protocol: 'l402',
    });
    expect(page).toContain('<strong>21.5 sats</strong>');
    expect(page).toContain('in bitcoin over Lightning by l402');
    expect(page).toContain('sha256sum');
    expect(page).not.toContain('AuthorizationUsed');
  });

  test('without a transaction, a block or an explorer says what is not known', () => {
    const page = main({ state: 'unknown', transaction: null, block: null, explorerUrl: null });
    expect(page.match(/not known<\/span>/g)).toHaveLength(2);
    expect(page).toContain('its end is not known yet');
  });

  test('never links to what is no web address, and shows each of several payments', () => {
    const page = main({ explorerUrl: 'javascript:alert(1)' }, { state: 'failed' });
    expect(page).not.toContain('javascript:');
    expect(page).toContain('What became of the 2 payments');
    expect(page.match(/class="payment"/g)).toHaveLength(2);
  });
});
