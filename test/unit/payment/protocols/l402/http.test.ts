import { expect, test } from 'vitest';
import { createL402 } from '../../../../../src/payment/protocols/l402/http.ts';
import { issueToken } from '../../../../../src/payment/protocols/l402/token.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const secrets = { current: Buffer.alloc(32, 1), previous: null };
const invoice = {
  text: 'lnbc10n1invoice',
  paymentHash: Buffer.alloc(32, 9),
  amountMsat: 1000n,
  payTo: '02'.repeat(33),
  expiresAt: 1_800_000_000,
};
const l402 = createL402(secrets, createManualClock(1_700_000_000_000));
const token = issueToken(secrets.current, invoice);
const preimage = 'ab'.repeat(32);

test('a credential is read with the tokens of other services beside ours, up to eight', () => {
  const beside = (count: number) => [...Array.from({ length: count }, () => 'AAAA'), token].join(',');
  for (const count of [0, 1, 7]) {
    expect(l402.read(`L402 ${beside(count)}:${preimage}`).payload).toEqual({ invoice: invoice.text, preimage });
  }
  expect(() => l402.read(`L402 ${beside(8)}:${preimage}`)).toThrow('invalid_payload');
});

test('a credential of more than 12,288 characters, and one of nothing but spaces, is refused', () => {
  expect(() => l402.read(`L402 ${'A'.repeat(12_288)}:${preimage}`)).toThrow('invalid_payload');
  expect(() => l402.read(`L402${' '.repeat(12_000)}x`)).toThrow('invalid_payload');
});
