import type { PaymentPayload } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client, type x402HTTPClient } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import type { BuyableOffer } from './offer.ts';
import { VALIDITY_SECONDS } from './usdc.ts';

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

/**
 * Signs for an offer that was checked, with an official client, for ten minutes at most. The client takes the time from
 * the entry that it signs for, so it gets a shorter one. The seller gets its own entry back, because it compares that
 * with its offer.
 */
export async function signOffer(
  http: x402HTTPClient,
  { challenge, requirement }: BuyableOffer,
): Promise<PaymentPayload> {
  const maxTimeoutSeconds = Math.min(requirement.maxTimeoutSeconds, VALIDITY_SECONDS);
  const payload = await http.createPaymentPayload({ ...challenge, accepts: [{ ...requirement, maxTimeoutSeconds }] });
  return { ...payload, accepted: requirement };
}
