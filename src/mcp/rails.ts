import type { Endpoint } from '../catalogue/endpoint.ts';
import { surfacesOf } from '../catalogue/paths.ts';
import { BadParameter } from '../errors.ts';
import { own } from '../lib/own-property.ts';
import { RAIL } from './meta.ts';

/** The rails that can pay for a priced tool. */
export type Rail = 'usdc' | 'lightning';

/** The rails of a priced entry. The first is the one that an unpaid call is offered by default. */
export function railsOf(endpoint: Pick<Endpoint<never>, 'access' | 'path' | 'onlyOn'>): readonly Rail[] {
  return surfacesOf(endpoint).map((surface) => (surface === 'lightning' ? 'lightning' : 'usdc'));
}

/**
 * The rail that an unpaid call is offered: that of `_meta`, else the `usual` one of the address, else the tool's first. Throws BadParameter for a rail that the
 * tool is not sold on.
 * Offering USDC costs nothing. Offering Lightning makes the node create an invoice and runs the handler.
 * So Lightning is offered only when the client asks for it, or when the tool is sold for bitcoin only.
 */
export function askedRail(meta: unknown, rails: readonly Rail[], usual: Rail | null): Rail {
  const asked = own(meta, RAIL);
  const wanted = asked === undefined ? (usual ?? rails[0]) : asked;
  const rail = rails.find((one) => one === wanted);
  if (rail !== undefined) return rail;
  throw new BadParameter([{ path: `_meta.${RAIL}`, message: `this tool can be paid by: ${rails.join(', ')}` }]);
}

/** Whether a tool is offered at an address: one without a rail of its own offers every tool. */
export function isSoldAt(rail: Rail | null, rails: readonly Rail[]): boolean {
  return rail === null || rails.includes(rail);
}

/** The rail of a presented payment, found by the network that the payment accepted. */
export function paidRail(payment: unknown): Rail {
  const network = own(own(payment, 'accepted'), 'network');
  return typeof network === 'string' && network.startsWith('lnbtc:') ? 'lightning' : 'usdc';
}
