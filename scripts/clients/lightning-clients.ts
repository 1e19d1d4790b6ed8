import { fetch402, fetchWithL402, fetchWithMpp } from '@getalby/lightning-tools';
import { answerOf, type Client } from './client.ts';

/** In sats: ten times the price of the route. */
const MAX_AMOUNT = 10;

const alby = (name: string, buy: typeof fetch402 | typeof fetchWithL402 | typeof fetchWithMpp): Client => ({
  name: `Alby, ${name}`,
  package: '@getalby/lightning-tools',
  buy: async ({ url, init, wallet }) => answerOf(await buy(url, init, { wallet, maxAmount: MAX_AMOUNT })),
});

export const LIGHTNING_CLIENTS: readonly Client[] = [
  alby('fetch402', fetch402),
  alby('fetchWithL402', fetchWithL402),
  alby('fetchWithMpp', fetchWithMpp),
];
