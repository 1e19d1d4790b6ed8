import { expect, test } from 'vitest';
import { bindHttp } from '../../../../../src/payment/lightning/binding.ts';
import { createRecentQuotes } from '../../../../../src/payment/lightning/offers.ts';

const NETWORK = 'lnbtc:0';
const quoteOf = (byte: number) => ({ invoice: { paymentHash: Buffer.alloc(32, byte) } }) as never;
const orderOf = (identity: string | null, path: string) =>
  ({ identity, binding: bindHttp({ method: 'GET', url: `https://a.test${path}`, body: new Uint8Array() }) }) as never;

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
  quotes.keep(orderOf('a', '/x'), quoteOf(1));
  pass(4999);
  expect(await quotes.find(orderOf('a', '/x'))).toEqual(quoteOf(1));
  expect(await quotes.find(orderOf('b', '/x'))).toBeNull();
  expect(await quotes.find(orderOf('a', '/y'))).toBeNull();
  pass(1);
  expect(await quotes.find(orderOf('a', '/x'))).toBeNull();
});

test('the quote of a tool call is never given out again', async () => {
  const { quotes } = opened();
  quotes.keep(orderOf(null, '/x'), quoteOf(1));
  expect(await quotes.find(orderOf(null, '/x'))).toBeNull();
});

test('a quote that has been paid is not offered again', async () => {
  const { quotes, claimed } = opened();
  quotes.keep(orderOf('a', '/x'), quoteOf(2));
  claimed.add('02'.repeat(32));
  expect(await quotes.find(orderOf('a', '/x'))).toBeNull();
});

test('a thousand quotes are kept at the most, the oldest is forgotten first', async () => {
  const { quotes } = opened();
  for (let at = 0; at <= 1000; at++) quotes.keep(orderOf('a', `/${at}`), quoteOf(3));
  expect(await quotes.find(orderOf('a', '/0'))).toBeNull();
  expect(await quotes.find(orderOf('a', '/1'))).toEqual(quoteOf(3));
});
