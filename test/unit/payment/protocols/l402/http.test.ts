import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { createL402 } from '../../../../../src/payment/protocols/l402/http.ts';
import { issueToken } from '../../../../../src/payment/protocols/l402/token.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const hashOf = (hex: string) => createHash('sha256').update(Buffer.from(hex, 'hex')).digest();
const secrets = { current: Buffer.alloc(32, 1), previous: null };
const invoice = {
  text: 'lnbc10n1invoice',
  paymentHash: hashOf('ab'.repeat(32)),
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

const other = { ...invoice, text: 'lnbc20n1invoice', paymentHash: hashOf('cd'.repeat(32)) };
const presented = (tokens: readonly string[]) => l402.read(`L402 ${tokens.join()}:${preimage}`);

test('of several tokens of ours, the one that the preimage has paid is presented, wherever it stands', () => {
  const tokens = [issueToken(secrets.current, other), token];
  for (const order of [tokens, tokens.toReversed()]) {
    const { payload, answered } = presented(order);
    expect(payload.invoice).toBe(invoice.text);
    expect([answered?.isSigned, answered?.isFor(invoice), answered?.isFor(other)]).toEqual([true, true, false]);
  }
});

test('a token of ours that the preimage does not open is passed on, so that the refusal names the preimage', () => {
  expect(presented([issueToken(secrets.current, other)]).payload.invoice).toBe(other.text);
});

test('a token under another key is presented only with the preimage that opens it, and after one of ours', () => {
  const [lost, another] = [Buffer.alloc(32, 3), Buffer.alloc(32, 4)];
  expect(presented([issueToken(lost, invoice)]).answered?.isSigned).toBe(false);
  expect(presented([issueToken(lost, invoice), token]).answered?.isSigned).toBe(true);
  for (const tokens of [[issueToken(lost, other)], [issueToken(lost, other), issueToken(another, other)]])
    expect(() => presented(tokens)).toThrow('invalid_challenge');
});
