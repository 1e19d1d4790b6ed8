import { x402HTTPClient } from '@x402/fetch';
import { namesTransaction, settledIn } from './answer-receipt.ts';
import type { BuyableOffer } from './offer.ts';
import { presentAuthorization } from './present-authorization.ts';
import { createStockClient, signOffer } from './stock-client.ts';

type Say = (line: string) => void;

/** Signs for a checked offer with the official client and returns the answer's body. Throws with the seller's reason. */
export async function payInUsdc(url: URL, offer: BuyableOffer, privateKey: `0x${string}`, say: Say): Promise<Buffer> {
  const { network, asset } = offer.requirement;
  const terms = { privateKey, network: network as `eip155:${string}`, asset, maxUnits: offer.amountUnits };
  const client = new x402HTTPClient(createStockClient(terms));
  // Pays the challenge that was checked. A new request could bring another price.
  const payload = await signOffer(client, offer);
  const { nonce, validBefore } = payload.payload.authorization as { nonce: string; validBefore: string };
  const headers = client.encodePaymentSignatureHeader(payload);
  const signed = { headers, amountUnits: offer.amountUnits, nonce, validBefore, transactionIn };
  return presentAuthorization(url, signed, say);
}

function transactionIn(headers: Headers): string | null {
  const receipt = settledIn(headers);
  return namesTransaction(receipt) ? receipt.transaction : null;
}
