import { answerOf, type Client, type Errand, termsOf } from './client.ts';
import { importKit, installKits } from './kits.ts';

type Handler = (context: unknown, accepts: readonly unknown[]) => Promise<unknown>;

interface Fetch {
  wrap(send: typeof fetch, options: { handlers: readonly Handler[] }): typeof fetch;
}
interface Payment {
  createPaymentHandler(wallet: unknown, options: { asset: { address: string; contractName: string } }): Handler;
}
interface Wallet {
  createLocalWallet(chain: { id: number; name: string }, privateKey: string): Promise<unknown>;
}

/** The client has no ceiling, and its table of assets does not hold Arc's USDC. */
async function buy(errand: Errand) {
  const missing = await installKits();
  if (missing !== null) throw new Error(`not run: ${missing}`);
  const { wrap } = (await importKit('@faremeter/fetch')) as Fetch;
  const { createPaymentHandler } = (await importKit('@faremeter/payment-evm/exact')) as Payment;
  const { createLocalWallet } = (await importKit('@faremeter/wallet-evm')) as Wallet;
  const { privateKey, asset } = termsOf(errand);
  const wallet = await createLocalWallet({ id: errand.network.chainId, name: 'Arc' }, privateKey);
  const handler = createPaymentHandler(wallet, { asset: { address: asset, contractName: 'USDC' } });
  return answerOf(await wrap(fetch, { handlers: [handler] })(errand.url, errand.init));
}

/** The client of Faremeter. Its packages are in `test/kits`. */
export const KIT_CLIENTS: readonly Client[] = [{ name: '@faremeter/fetch', package: '@faremeter/fetch', buy }];
