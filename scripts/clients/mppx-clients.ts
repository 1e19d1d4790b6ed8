import { privateKeyToAccount } from 'viem/accounts';
import { answerOf, type Client, type Errand } from './client.ts';

interface MppxClient {
  evm(options: object): readonly object[];
  readonly Fetch: { from(options: { methods: readonly object[] }): typeof fetch };
}

/**
 * Imported by a name that the compiler does not follow: types that the package imports declare a browser's `Window` for the whole project.
 */
const PACKAGE: string = 'mppx/client';
const { evm, Fetch } = (await import(PACKAGE)) as MppxClient;

/** The client has no ceiling of its own. In USDC. */
const MAX_AMOUNT = '0.005';

function buyWith({ network, wallet, url, init }: Errand, domain: { name: string; version: string } | null) {
  const methods = evm({
    account: privateKeyToAccount(wallet.account.privateKey),
    networks: [network.chainId],
    currencies: [network.usdc],
    decimals: 6,
    maxAmount: MAX_AMOUNT,
    ...(domain && { authorization: domain }),
  });
  return Fetch.from({ methods })(url, init);
}

export const MPPX_CLIENTS: readonly Client[] = [
  {
    name: 'mppx, `evm` without the token’s name',
    package: 'mppx',
    buy: async (errand) => answerOf(await buyWith(errand, null)),
  },
  {
    name: 'mppx, `evm` with `authorization`',
    package: 'mppx',
    buy: async (errand) => answerOf(await buyWith(errand, { name: 'USDC', version: '2' })),
  },
];
