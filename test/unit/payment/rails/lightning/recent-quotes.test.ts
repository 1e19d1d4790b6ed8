import { expect, test } from 'vitest';
import { bindHttp } from '../../../../../src/payment/lightning/binding.ts';
import { createRecentQuotes } from '../../../../../src/payment/lightning/offers.ts';

const NETWORK = 'lnbtc:0';
const quoteOf = (byte: number) => ({ invoice: { paymentHash: Buffer.alloc(32, byte) } }) as never;
const callOf = (identity: string, path: string, kind: 'http' | 'mcp' = 'http') => {
  const binding = bindHttp({ method: 'GET', url: `https://a.test${path}`, body: new Uint8Array() });
  return { target: { kind }, identity, binding } as never;
};

function opened() {
  let now = 1000;
  const claimed = new Set<string>();
  const findClaim = async ({ paymentHash }: { paymentHash: Uint8Array }) =>
    claimed.has(Buffer.from(paymentHash).toString('hex')) ? ({} as never) : null;
  const quotes = createRecentQuotes({ findClaim }, NETWORK, { nowMs: () => now } as never);
  const pass = (ms: number): void => {
    now += ms;
  };
  return { quotes, claimed, pass };
}

test('a quote is found again by the same client for the same request, for five seconds', async () => {
  const { quotes, pass } = opened();
  quotes.keep(callOf('a', '/x'), quoteOf(1));
  pass(4999);
  expect(await quotes.find(callOf('a', '/x'))).toEqual(quoteOf(1));
  expect(await quotes.find(callOf('b', '/x'))).toBeNull();
  expect(await quotes.find(callOf('a', '/y'))).toBeNull();
  pass(1);
  expect(await quotes.find(callOf('a', '/x'))).toBeNull();
});

test('the quote of a tool call is never given out again', async () => {
  const { quotes } = opened();
  quotes.keep(callOf('a', '/x', 'mcp'), quoteOf(1));
  expect(await quotes.find(callOf('a', '/x', 'mcp'))).toBeNull();
  expect(await quotes.find(callOf('a', '/x'))).toBeNull();
  // Nor is a route's quote given to a tool call.
  quotes.keep(callOf('a', '/x'), quoteOf(2));
  expect(await quotes.find(callOf('a', '/x', 'mcp'))).toBeNull();
});

test('a quote that has been paid is not offered again', async () => {
  const { quotes, claimed } = opened();
  quotes.keep(callOf('a', '/x'), quoteOf(2));
  claimed.add('02'.repeat(32));
  expect(await quotes.find(callOf('a', '/x'))).toBeNull();
});

test('a thousand quotes are kept at the most, the oldest is forgotten first', async () => {
  const { quotes } = opened();
  for (let at = 0; at <= 1000; at++) quotes.keep(callOf('a', `/${at}`), quoteOf(3));
  expect(await quotes.find(callOf('a', '/0'))).toBeNull();
  expect(await quotes.find(callOf('a', '/1'))).toEqual(quoteOf(3));
});
