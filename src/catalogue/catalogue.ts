import { chainToken } from '../endpoints/chain-token.ts';
import { chainTx } from '../endpoints/chain-tx.ts';
import { chainWallet } from '../endpoints/chain-wallet.ts';
import { feesEstimateFree, feesEstimatePaid } from '../endpoints/fees-estimate.ts';
import { network } from '../endpoints/network.ts';
import { selftestFail } from '../endpoints/selftest-fail.ts';
import type { Sources } from '../endpoints/sources.ts';
import type { Endpoint } from './endpoint.ts';

/** Everything that is sold or given away, in the order of the price list; what is not here is neither served nor described. */
export const catalogue: readonly Endpoint<Sources>[] = Object.freeze([
  network,
  feesEstimateFree,
  feesEstimatePaid,
  chainWallet,
  chainToken,
  chainTx,
  selftestFail,
]);
