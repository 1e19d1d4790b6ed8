import { fetch402, fetchWithL402, fetchWithMpp } from '@getalby/lightning-tools';
import { answerOf, type Client } from './client.ts';

/** In sats: ten times the price of the route. */
const MAX_AMOUNT = 10;

const alby = (name: string, buy: typeof fetch402 | typeof fetchWithL402 | typeof fetchWithMpp): Client => ({
  name: `Alby, ${name}`,
  package: '@getalby/lightning-tools',
  buy: async ({ url, init, wallet }) => answerOf(await buy(url, init, { wallet, maxAmount: MAX_AMOUNT })),
});

/** The package cannot be installed with the others, so there is nothing to import under its name. */
const L402_REQUESTS = 'l402-requests';

const l402Requests: Client = {
  name: L402_REQUESTS,
  package: L402_REQUESTS,
  async buy() {
    await import(L402_REQUESTS).catch(() => {
      throw new Error('not run: the package could not be installed');
    });
    throw new Error('not run: the package is there now, and this script does not know how to call it');
  },
};

export const LIGHTNING_CLIENTS: readonly Client[] = [
  alby('fetch402', fetch402),
  alby('fetchWithL402', fetchWithL402),
  alby('fetchWithMpp', fetchWithMpp),
  l402Requests,
];
