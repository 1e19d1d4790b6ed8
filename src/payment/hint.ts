import type { Endpoint } from '../catalogue/endpoint.ts';
import { referenceLink } from '../catalogue/paths.ts';
import { chainTitle } from '../lib/named-chain.ts';
import type { Place, Requested } from './protocol.ts';

/**
 * Prepares the hint of a route that is sold in USDC, for people who read its 402. It says what is wrong, or what the
 * route sells; the price; what to do next; and where the reference shows this very route. `howToPay` says what the
 * client does to pay under `mount`. The hint of a request without a fault is made once.
 */
export function createHint(
  { path, summary, price, freeSummary }: Endpoint<never>,
  mount: 'paid' | 'mpp',
  howToPay: string,
  { publicOrigin, chain }: Place,
): (request: Pick<Requested, 'fault' | 'refusal'>) => string {
  const cost = `This answer costs ${price?.usd} USDC on ${chainTitle(chain)}: ${howToPay}`;
  const free = freeSummary ? ` Free summary: GET ${freeSummary}.` : '';
  const terms = `${cost} How to pay: ${publicOrigin}${referenceLink(path, mount)}.${free}`;
  const usual = `${summary} ${terms}`;
  return ({ fault, refusal }) => {
    if (fault === null && refusal === null) return usual;
    return [refusal, fault && wouldBeRefused(fault), terms].filter(Boolean).join(' ');
  };
}

/** How a hint says that the paid request would be refused. `npm run pay` looks for it before it signs. */
export const WOULD_BE_REFUSED = 'With a payment this request would be a 400';

/** A request without a payment gets its price whatever its parameters are. Its client must not learn of a fault after it has signed. */
function wouldBeRefused(fault: string): string {
  return `${fault}. ${WOULD_BE_REFUSED}, uncharged: mend it before you sign.`;
}
