import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../../catalogue/endpoint.ts';
import { pathOn, referenceLink } from '../../catalogue/paths.ts';
import { BadParameter } from '../../errors.ts';
import type { NamedChain } from '../../lib/service.ts';
import { MSAT_PER_SAT } from '../../lib/units.ts';
import { pathAndQuery } from '../../lib/url.ts';
import type { Target } from '../call.ts';
import { type Checkout, callOf, type Running } from '../checkout.ts';
import type { Demand, Quote, QuotedProtocol, Receipt } from '../protocol.ts';
import type { RefusalWords } from '../refusal.ts';
import { bindHttp, bindMcp, type RequestBinding } from './binding.ts';
import type { LightningCall, LightningRail } from './offers.ts';
import { refusedWithoutOffer } from './serve-granted.ts';

// The Lightning rail and its checkout, for routes and tools. The price is quoted for each request. A request is checked
// and bound before an invoice is made; a refused payment gets a new offer where one can be made.

/** What a quote asks for, as its surface says it. Null `quote`: none could be made after a refusal. */
export type WriteQuote<D> = (
  call: LightningCall,
  quote: Quote | null,
  reason: { readonly error?: string | undefined; readonly refusal: string | null },
) => D;

interface CheckoutOptions<S, D> {
  readonly rail: LightningRail;
  readonly running: Running<S>;
  readonly network: string;
  /** The origin that invoices are bound to, whatever the Host header says. */
  readonly publicOrigin: string;
  readonly words: RefusalWords;
  readonly write: WriteQuote<D>;
}

export function createLightningCheckout<S, D>(
  endpoint: Endpoint<S>,
  { rail, running, network, publicOrigin, words, write }: CheckoutOptions<S, D>,
): Checkout<LightningCall, D> {
  const route = pathOn(endpoint, 'lightning');
  return {
    read: (ask) => {
      const binding = bind(ask.target, publicOrigin);
      const call = callOf(endpoint, route, ask, running);
      call.params();
      return { ...call, binding };
    },
    demand: async (call, error) => write(call, await rail.offer(call, true), { error, refusal: null }),
    sell: rail.sell,
    refusalReceipt: ({ reason }) => ({
      success: false,
      errorReason: reason,
      transaction: '',
      network: network as Receipt['network'],
    }),
    // A new offer: the open one may be the one that this buyer has paid.
    demandAgain: async (call, refusal, needsOffer) => {
      const quote = await rail.offer(call, false).catch((error: unknown) => {
        if (needsOffer) throw refusedWithoutOffer(error, refusal.reason);
        return null;
      });
      return write(call, quote, { error: refusal.reason, refusal: words(refusal) });
    },
  };
}

const EMPTY = new Uint8Array();

/** Binds a request as received. Throws BadParameter for one that cannot be bound. */
function bind(target: Target, publicOrigin: string): RequestBinding {
  if (target.kind === 'mcp') {
    const { server, tool: name, arguments: given, meta } = target;
    const binding = bindMcp({ server, name, arguments: given, metadata: meta });
    if (!binding) throw fault('arguments', 'these arguments cannot be bound into an invoice');
    return binding;
  }
  // The binding states an empty body, and no data route reads one.
  if (target.hasBody) throw fault('', 'a data route takes no body; send parameters in the query');
  const url = boundUrl(target.url, publicOrigin);
  const binding = url === null ? null : bindHttp({ method: target.method, url, body: EMPTY });
  if (!binding) throw fault('', 'this request target cannot be bound into an invoice');
  return binding;
}

/** The configured origin and the raw target. Null for a target that names no path. */
function boundUrl(target: string, publicOrigin: string): string | null {
  const path = pathAndQuery(target);
  return path === null ? null : `${publicOrigin}${path}`;
}

const fault = (path: string, message: string): BadParameter => new BadParameter([{ path, message }]);

/** The Lightning part of a tool's `accepts`. */
export const quoteAccepts: WriteQuote<readonly PaymentRequirements[]> = (_call, quote) =>
  quote ? [quote.requirement] : [];

interface HttpQuotes {
  readonly protocol: Pick<QuotedProtocol, 'quote'>;
  /** Its name says whether all of the service's money is play money. */
  readonly chain: NamedChain;
  readonly publicOrigin: string;
}

/** A 402 over HTTP, in the words of `protocol`. */
export function quote402({ protocol, chain, publicOrigin }: HttpQuotes): WriteQuote<Demand> {
  return ({ endpoint, target }, quote, { error, refusal }) => {
    const url = (target.kind === 'http' && boundUrl(target.url, publicOrigin)) || publicOrigin;
    const hint = hintOf(chain, `${publicOrigin}${referenceLink(endpoint.path, 'lightning')}`, quote, refusal);
    return protocol.quote({ endpoint, url, hint }, quote, error);
  };
}

// What an offer's description says to people: the refusal, the price, what to do next, and where the reference shows
// this route. The scheme binds nothing to it. The money is play money where the chain's is.
function hintOf({ isPlayMoney }: NamedChain, reference: string, quote: Quote | null, refusal: string | null): string {
  const money = isPlayMoney ? 'in bitcoin over Lightning (demo, play money)' : 'in bitcoin over Lightning';
  const terms = quote
    ? `This answer costs ${satsOf(quote)} sat (${quote.priceUsd} USD) ${money}: ` +
      'pay the invoice in accepts, and repeat the request with the preimage.'
    : 'No new invoice could be made; ask again without a payment.';
  return [refusal, terms, `How to pay: ${reference}.`].filter(Boolean).join(' ');
}

function satsOf({ invoice }: Quote): bigint {
  return invoice.amountMsat / MSAT_PER_SAT;
}
