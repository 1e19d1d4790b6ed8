import { ExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';

interface ClientTerms {
  readonly privateKey: `0x${string}`;
  readonly network: `eip155:${string}`;
  readonly asset: string;
  /** The most that the client signs for, in the asset's base units. */
  readonly maxUnits: bigint;
}

/**
 * The official x402 client, allowed to pay in one asset on one network up to a limit.
 * The `allowedAssets` entry is needed, because the client's table of default assets does not hold Arc's USDC.
 */
export function createStockClient({ privateKey, network, asset, maxUnits }: ClientTerms): x402Client {
  return new x402Client()
    .register(network, new ExactEvmScheme(privateKeyToAccount(privateKey)))
    .setSpendControls({ allowedAssets: [{ network, asset, maxAmountPerPayment: maxUnits.toString() }] });
}
