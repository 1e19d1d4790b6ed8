import type { Endpoint } from '../catalogue/endpoint.ts';
import { surfacesOf } from '../catalogue/paths.ts';
import { BadParameter } from '../errors.ts';
import { own } from '../lib/own-property.ts';
import { RAIL } from './meta.ts';

/** How a priced tool can be paid for. */
export type Rail = 'usdc' | 'lightning';

/** The rails of a priced entry, the one that is offered unasked first. */
export function railsOf(endpoint: Pick<Endpoint<never>, 'access' | 'path' | 'onlyOn'>): readonly Rail[] {
  return surfacesOf(endpoint).map((surface) => (surface === 'lightning' ? 'lightning' : 'usdc'));
}

/**
 * The rail that an unpaid call is offered. USDC costs us nothing to offer; an invoice costs the node one and runs the handler, so
 * Lightning is offered only to who asks for it in `_meta`, or where there is no other way. Throws BadParameter for a rail that is not there.
 */
export function askedRail(meta: unknown, rails: readonly Rail[]): Rail {
  const asked = own(meta, RAIL);
  const rail = asked === undefined ? rails[0] : rails.find((one) => one === asked);
  if (rail !== undefined) return rail;
  throw new BadParameter([{ path: `_meta.${RAIL}`, message: `this tool can be paid by: ${rails.join(', ')}` }]);
}

/** The rail of a presented payment, by the network that it accepted. */
export function paidRail(payment: unknown): Rail {
  const network = own(own(payment, 'accepted'), 'network');
  return typeof network === 'string' && network.startsWith('lnbtc:') ? 'lightning' : 'usdc';
}
