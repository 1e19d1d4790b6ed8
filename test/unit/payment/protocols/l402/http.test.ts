import { createHash } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import type { AuthScheme } from '../../../../../src/payment/protocol.ts';
import { createL402, issueToken } from '../../../../../src/payment/protocols/l402/l402.ts';
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
let l402: AuthScheme;
beforeEach(() => {
  l402 = createL402(secrets, createManualClock(1_700_000_000_000));
});
const token = issueToken(secrets.current, invoice);
const preimage = 'ab'.repeat(32);

test('a credential is read with the tokens of other services beside ours, up to eight', () => {
  const beside = (count: number) => [...Array.from({ length: count }, () => 'AAAA'), token].join(',');
  for (const count of [0, 1, 7]) {
    expect(l402.read(`L402 ${beside(count)}:${preimage}`).payload).toEqual({ invoice: invoice.text, preimage });
  }
  expect(() => l402.read(`L402 ${beside(8)}:${preimage}`)).toThrow('invalid_payload');
});

test('a challenge names the token and the invoice in the order that clients look for, under both names of the scheme', () => {
  expect([l402.protocol, l402.names]).toEqual(['l402', ['l402', 'lsat']]);
  const [, macaroon = '', text] = /^L402 macaroon="([^"]+)", invoice="([^"]+)"$/.exec(l402.challenge(invoice)) ?? [];
  expect(text).toBe(invoice.text);
  for (const name of ['L402', 'LSAT', 'lsat'])
    expect(l402.read(`${name} ${macaroon}:${preimage.toUpperCase()}`)).toMatchObject({
      protocol: 'l402',
      accepted: null,
      payload: { invoice: invoice.text, preimage },
      answered: { isSigned: true, lateSeconds: 7 * 86_400 },
    });
});

test('a sold answer has no receipt of its own', () => {
  const receipt = { success: true, transaction: 'ee', network: 'lnbtc:0' as const };
  expect(l402.receipt(receipt, null as never, 0)).toEqual([]);
});

test('a token is for the invoice whose text and payment hash it has', () => {
  const { answered } = l402.read(`L402 ${token}:${preimage}`);
  expect(answered?.isFor(invoice)).toBe(true);
  expect(answered?.isFor({ ...invoice, text: 'lnbc20n1other' })).toBe(false);
  expect(answered?.isFor({ ...invoice, paymentHash: Buffer.alloc(32) })).toBe(false);
});

test('a credential of more than 12,288 characters, and one of nothing but spaces, is refused', () => {
  // Seven tokens of no meaning fill it up to that length.
  const rest = 12_288 - `L402 ${','.repeat(7)}${token}:${preimage}`.length;
  const filling = Array.from({ length: 7 }, (_, at) => 'A'.repeat(Math.floor(rest / 7) + (at < rest % 7 ? 1 : 0)));
  const longest = `L402 ${filling.join()},${token}:${preimage}`;
  expect([longest.length, l402.read(longest).payload.invoice]).toEqual([12_288, invoice.text]);
  expect(() => l402.read(longest.replace(' A', ' AA'))).toThrow('invalid_payload');
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
