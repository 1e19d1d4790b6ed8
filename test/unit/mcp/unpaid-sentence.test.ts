import type { PaymentRequirements } from '@x402/core/types';
import { expect, test } from 'vitest';
import { unpaidSentence } from '../../../src/mcp/unpaid-sentence.ts';

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
    'paid_x is not paid for yet, and nothing was charged: it costs 0.002 USDC on Arc, which a client with a USDC wallet pays by the terms below, and then makes the same call again.',
  ],
  [
    'over Lightning names the sats',
    { accepts: [offer('BTC', '3000'), offer('0x36', '2000')] },
    'paid_x is not paid for yet, and nothing was charged: it costs 3 sats over Lightning (0.002 USD), which a client with a Lightning wallet pays by the terms below, and then makes the same call again.',
  ],
  [
    'for one sat has the singular',
    { accepts: [offer('BTC', '1000')] },
    'paid_x is not paid for yet, and nothing was charged: it costs 1 sat over Lightning (0.002 USD), which a client with a Lightning wallet pays by the terms below, and then makes the same call again.',
  ],
  [
    'after a refusal names the reason',
    { refusal: 'payment_already_used' },
    'The payment for paid_x was refused (payment_already_used), and this call was not charged: it costs 0.002 USDC on Arc, which a client with a USDC wallet pays by the terms below, and then makes the same call again.',
  ],
  [
    'without an offer says to come again',
    { refusal: 'invalid_payload', accepts: [] },
    'The payment for paid_x was refused (invalid_payload), and this call was not charged: no offer can be made now, so make the same call again later.',
  ],
])('the sentence of an unpaid call %s', (_title, given, sentence) => {
  expect(unpaidSentence({ ...unpaid, ...given })).toBe(sentence);
});
