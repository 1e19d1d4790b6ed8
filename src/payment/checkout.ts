import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams, type Query } from '../catalogue/params.ts';
import { BadParameter, type ParameterError, Unavailable } from '../errors.ts';
import type { Ask, Checkout, Presentation } from './call.ts';
import type { Demand, Prepared, Requested } from './protocol.ts';
import type { Delivery } from './receipt.ts';
import { corrected, type RefusalWords } from './refusal.ts';

// The checkout of an endpoint whose terms are known before a request. A request gets the price whatever its parameters
// are, and hears beside it what is wrong with them, so that no client signs before it hears of a fault.

export type Purchase<S> = (
  endpoint: Endpoint<S>,
  requirement: Offer['requirement'],
  presentation: Presentation,
) => Promise<Delivery>;

interface UsdcCheckoutOptions<S> {
  offer(): Offer;
  readonly purchase: Purchase<S>;
  readonly sources: S;
  readonly words: RefusalWords;
}

export function createUsdcCheckout<S>(
  endpoint: Endpoint<S>,
  { offer, purchase, sources, words }: UsdcCheckoutOptions<S>,
): Checkout<Ask> {
  const faultOf = createFaultFinder(endpoint, sources);
  const requested = ({ method, target, query }: Ask, refusal: string | null): Requested => ({
    method,
    target,
    refusal,
    fault: faultOf(query),
  });
  const demand = (ask: Ask, error?: string): Demand => {
    const { accepts, demand: prepared } = offer();
    // A 402 that offers nothing is no demand: the rails that sell this route are not proven yet.
    if (accepts.length === 0)
      throw new Unavailable('settlement_unavailable', 'no way to pay for this can be offered now');
    return prepared(requested(ask, null), error);
  };

  return {
    read: (ask) => ask,
    demand,
    sell: ({ query, client, identity, signal }, credential) =>
      purchase(endpoint, offer().requirement, {
        credential,
        query,
        client: client(),
        identity: identity(),
        signal: signal(),
      }),
    refusalReceipt: ({ settlement }) => settlement,
    demandAgain: (ask, refusal) => {
      const { reason, correction } = refusal;
      const { demand: prepared, accepts } = offer();
      const entries = correction ? corrected(accepts, correction) : undefined;
      return prepared(requested(ask, words(refusal)), reason, entries);
    },
  };
}

/** What an endpoint costs in USDC, prepared at start: a 402 takes little more work than sending its bytes. */
export interface Offer {
  /** The plain requirement. Each rail makes its entry from it. */
  readonly requirement: PaymentRequirements;
  /** Every way to pay in USDC, the plain one first. */
  readonly accepts: readonly PaymentRequirements[];
  readonly price: bigint;
  readonly demand: Prepared;
}

// Null when nothing is wrong, or cannot be said now. A request without parameters is judged once, when one comes.
function createFaultFinder<S>(endpoint: Endpoint<S>, sources: S): (query: Query) => string | null {
  let without: string | null | undefined;
  return (query) => {
    for (const _name in query) return faultOf(endpoint, query, sources);
    if (without === undefined) without = faultOf(endpoint, {}, sources);
    return without;
  };
}

function faultOf<S>(endpoint: Endpoint<S>, query: Query, sources: S): string | null {
  try {
    endpoint.checkParams(parseParams(endpoint, query), sources);
    return null;
  } catch (error) {
    if (!(error instanceof BadParameter)) return null;
    return error.errors?.map(inWords).join('; ') ?? null;
  }
}

/** A message that says of a parameter that it is not there, such as `required: a host name`. */
const ABSENT = /^(?:missing|required)\b/;

function inWords({ path, message }: ParameterError): string {
  return ABSENT.test(message) ? message.replace(ABSENT, `${path} is missing`) : `${path}: ${message}`;
}
