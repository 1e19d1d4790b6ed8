import type { PaymentRequirements } from '@x402/core/types';
import { expect, test } from 'vitest';
import { unpaidSentence } from '../../../src/mcp/priced-tool.ts';

const offer = (asset: string, amount: string) => ({ asset, amount }) as PaymentRequirements;
const unpaid = {
  tool: 'paid_x',
  priceUsd: '0.002',
  chain: { name: 'Arc', isPlayMoney: false },
  accepts: [offer('0x36', '2000')],
  refusal: null,
};

test.each([
  [
    'in USDC names the price and the chain',
    {},
    'paid_x is not paid for yet, and nothing was charged. It costs 0.002 USDC on Arc: a client with a USDC wallet pays it by the terms below, and then makes the same call again.',
  ],
  [
    'over Lightning names the sats',
    { accepts: [offer('BTC', '3000'), offer('0x36', '2000')] },
    'paid_x is not paid for yet, and nothing was charged. It costs 3 sats over Lightning (0.002 USD): a client with a Lightning wallet pays it by the terms below, and then makes the same call again.',
  ],
  [
    'for one sat has the singular',
    { accepts: [offer('BTC', '1000')] },
    'paid_x is not paid for yet, and nothing was charged. It costs 1 sat over Lightning (0.002 USD): a client with a Lightning wallet pays it by the terms below, and then makes the same call again.',
  ],
  [
    'after a refusal says what is wrong, and the price of a new payment',
    { refusal: 'This payment is already used.' },
    'The payment for paid_x was refused, and this call was not charged. This payment is already used. A new payment costs 0.002 USDC on Arc: a client with a USDC wallet pays it by the terms below, and then makes the same call again.',
  ],
  [
    'without an offer says to come again',
    { refusal: 'The payment cannot be read.', accepts: [] },
    'The payment for paid_x was refused, and this call was not charged. The payment cannot be read. No new payment can be asked for now: make the same call again later.',
  ],
])('the sentence of an unpaid call %s', (_title, given, sentence) => {
  expect(unpaidSentence({ ...unpaid, ...given })).toBe(sentence);
});
