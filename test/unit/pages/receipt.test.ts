import { describe, expect, test } from 'vitest';
import { renderReceipt } from '../../../src/pages/small.ts';
import type { FoundPayment } from '../../../src/payment/receipt.ts';

const CONFIG = {
  publicOrigin: 'https://us.example',
  network: { name: 'Arc', isPlayMoney: false },
  web: { contactUrl: null },
  site: { sourceUrl: null, termsUrl: null },
};
const HASH = `0x${'ab'.repeat(32)}`;
const payment: FoundPayment = {
  rail: 'usdc',
  protocol: 'x402',
  amount: '2000',
  state: 'settled',
  transaction: HASH,
  block: 7,
  at: 1_800_000_000,
  explorerUrl: `https://explorer.example/tx/${HASH}`,
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
    expect(page).toContain('It is not known yet whether the payment was taken.');
  });

  test('never links to what is no web address, and shows each of several payments', () => {
    const page = main({ explorerUrl: 'javascript:alert(1)' }, { state: 'failed' });
    expect(page).not.toContain('javascript:');
    expect(page).toContain('What became of the 2 payments');
    expect(page.match(/class="payment"/g)).toHaveLength(2);
  });

  test('says of a failed payment that a third party may still be able to send it', () => {
    const page = main({ state: 'failed' });
    expect(page).toContain('a third party that has seen it may still be able to send it');
    expect(page).not.toMatch(/nothing was taken|moved no money:/i);
    expect(page).not.toContain('AuthorizationUsed');
    expect(page).toContain('is not settled has nothing to prove yet');
  });

  test('says of a proof that was taken neither that the payment arrived nor that the answer was not delivered', () => {
    const page = main({ rail: 'lightning', state: 'claimed', protocol: null, block: null, explorerUrl: null });
    expect(page).toContain('The proof was taken. If its answer has not reached you, present the same proof again');
    expect(page).not.toMatch(/arrived|has not been delivered/);
  });

  test('never says that the payer alone knows the preimage', () => {
    const page = main({ rail: 'lightning', state: 'delivered', block: null, explorerUrl: null });
    expect(page).toContain('shows that it was paid, not by whom');
    expect(page).not.toContain('alone got the preimage');
  });

  test.each([
    ['a Gateway transfer', '6f1b2c3d-0000-4000-8000-000000000001'],
    ['a Gateway batch', HASH],
    ['a voucher', null],
  ])('promises no transfer event on the chain for %s', (_name, transaction) => {
    const page = main({ transaction, block: null, explorerUrl: null });
    expect(page).not.toContain('AuthorizationUsed');
    expect(page).toContain('has no event of its own on the chain');
  });

  test('of a direct payment and a Gateway payment tells how to prove each', () => {
    const page = main({}, { transaction: null, block: null });
    expect(page).toContain('AuthorizationUsed');
    expect(page).toContain('has no event of its own on the chain');
  });
});
