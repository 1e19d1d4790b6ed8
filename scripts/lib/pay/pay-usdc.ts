import type { PaymentPayload, SettleResponse } from '@x402/core/types';
import { decodePaymentResponseHeader, x402HTTPClient } from '@x402/fetch';
import { challengeErrorOf } from './challenge.ts';
import type { BuyableOffer } from './offer.ts';
import type { Order } from './pay-options.ts';
import { presentPayment } from './present-payment.ts';
import { printable } from './printable.ts';
import { problemDetail } from './problem-detail.ts';
import { checkUsdcPrice } from './spending.ts';
import { createStockClient } from './stock-client.ts';
import { formatUsdc } from './usdc.ts';

type Say = (line: string) => void;

/** Prints what an offer asks. Throws when the price is above the ceiling or above the listed price. */
export async function checkUsdcOffer(order: Order, offer: BuyableOffer, say: Say): Promise<void> {
  const { url, discovery, ceilingUnits } = order;
  const { challenge, requirement, amountUnits } = offer;
  say(`asked:   ${formatUsdc(amountUnits)} on ${requirement.network} to ${requirement.payTo}`);
  if (challenge.resource.description) say(`for:     ${printable(challenge.resource.description)}`);
  await checkUsdcPrice({ url, discovery, say }, amountUnits, ceilingUnits, requirement.asset);
}

/** Signs for a checked offer with the official client and returns the answer's body. Throws with the seller's reason. */
export async function payInUsdc(url: URL, offer: BuyableOffer, privateKey: `0x${string}`, say: Say): Promise<Buffer> {
  const { network, asset } = offer.requirement;
  const terms = { privateKey, network: network as `eip155:${string}`, asset, maxUnits: offer.amountUnits };
  const client = new x402HTTPClient(createStockClient(terms));
  // Pays the challenge that was checked. A new request could bring another price.
  const payload = await client.createPaymentPayload(offer.challenge);
  const answer = await presentPayment(url, client.encodePaymentSignatureHeader(payload), say).catch(
    (cause: unknown) => {
      throw new Error(openOutcome('no answer', payload), { cause });
    },
  );
  const receipt = receiptOf(answer);
  if (!answer.ok) {
    const failure = `status ${answer.status}: ${printable(await reasonOf(answer, receipt))}`;
    throw new Error([409, 503].includes(answer.status) ? openOutcome(failure, payload) : failure);
  }
  const body = Buffer.from(await answer.arrayBuffer());
  if (receipt?.success) say(`paid:    ${formatUsdc(offer.amountUnits)}, transaction ${printable(receipt.transaction)}`);
  else say(`paid:    ${formatUsdc(offer.amountUnits)} was authorized, but the answer came without a receipt`);
  return body;
}

function receiptOf(answer: Response): SettleResponse | null {
  try {
    return decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '');
  } catch {
    return null;
  }
}

/** Why a presented payment got no answer: the header's reason, else the body's. */
export async function reasonOf(answer: Response, receipt: SettleResponse | null): Promise<string> {
  const reason = receipt?.errorReason ?? challengeErrorOf(answer.headers);
  return reason ?? problemDetail(await answer.text().catch(() => '')) ?? 'no reason given';
}

/** The message for a payment whose outcome is not known. It stays valid until it expires, so the buyer must know its nonce before signing another. */
function openOutcome(failure: string, { payload }: PaymentPayload): string {
  const { nonce, validBefore } = payload.authorization as { nonce: string; validBefore: string };
  return `${failure}; whether it is charged is open until ${validBefore} (Unix seconds), its nonce is ${nonce}`;
}
