import type { BuyableOffer } from './offer.ts';
import type { Order } from './pay-options.ts';
import { printable } from './printable.ts';
import { checkUsdcPrice } from './spending.ts';
import { formatUsdc } from './usdc.ts';

/** Prints what an offer asks. Throws when the price is above the ceiling or above the listed price. */
export async function checkUsdcOffer(order: Order, offer: BuyableOffer, say: (line: string) => void): Promise<void> {
  const { url, discovery, ceilingUnits } = order;
  const { challenge, requirement, amountUnits } = offer;
  say(`asked:   ${formatUsdc(amountUnits)} on ${requirement.network} to ${requirement.payTo}`);
  if (challenge.resource.description) say(`for:     ${printable(challenge.resource.description)}`);
  await checkUsdcPrice({ url, discovery, say }, amountUnits, ceilingUnits, requirement.asset);
}
