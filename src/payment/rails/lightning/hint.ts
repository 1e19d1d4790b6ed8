import { referenceLink } from '../../../catalogue/paths.ts';
import type { NamedChain } from '../../../lib/named-chain.ts';
import { MSAT_PER_SAT } from '../../../lib/units.ts';
import type { Quote } from '../../protocol.ts';

/**
 * Makes what an offer says to people in its description: why the payment was refused; the price; what to do next; and
 * where the reference shows this very route, by its path below the prefix. The scheme binds nothing to the description.
 * The money is play money where the chain's is, because both networks of a demo are local.
 */
export function createLightningHint({ isPlayMoney }: NamedChain, publicOrigin: string, path: string) {
  const money = isPlayMoney ? 'in bitcoin over Lightning (demo, play money)' : 'in bitcoin over Lightning';
  return (quote: Quote | null, refusal: string | null): string => {
    const terms = quote
      ? `This answer costs ${satsOf(quote)} sat (${quote.priceUsd} USD) ${money}: pay the invoice in accepts, and repeat the request with the preimage.`
      : 'No new invoice could be made; ask again without a payment.';
    return [refusal, terms, `How to pay: ${publicOrigin}${referenceLink(path, 'lightning')}.`]
      .filter(Boolean)
      .join(' ');
  };
}

/** Prices are whole sats. */
function satsOf({ invoice }: Quote): bigint {
  return invoice.amountMsat / MSAT_PER_SAT;
}
