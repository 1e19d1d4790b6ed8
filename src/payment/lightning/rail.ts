import type { Endpoint } from '../../catalogue/endpoint.ts';
import { parseParams } from '../../catalogue/params.ts';
import { referenceLink } from '../../catalogue/paths.ts';
import { BadParameter } from '../../errors.ts';
import type { NamedChain } from '../../lib/service.ts';
import { MSAT_PER_SAT } from '../../lib/units.ts';
import { pathAndQuery } from '../../lib/url.ts';
import type { Ask, Checkout, QuotedTools, ToolOrder } from '../call.ts';
import type { Quote, QuotedProtocol, Receipt } from '../protocol.ts';
import type { PaymentRefused, RefusalWords } from '../refusal.ts';
import { bindHttp, bindMcp } from './binding.ts';
import type { LightningOrder, Offers } from './offers.ts';
import type { Redeem } from './redeem.ts';
import { refusedWithoutOffer } from './serve-granted.ts';

// The checkouts of the Lightning rail, for routes and tools. The price is quoted for each request. A request is checked
// and bound before an invoice is made; a refused payment gets a new offer where one can be made.

interface CheckoutOptions<S> {
  readonly offers: Offers<S>;
  readonly redeem: Redeem<S>;
  readonly sources: S;
  readonly network: string;
  /** The origin that invoices are bound to, whatever the Host header says. */
  readonly publicOrigin: string;
  readonly protocol: Pick<QuotedProtocol, 'quote' | 'needsQuote'>;
  /** Its name says whether all of the service's money is play money. */
  readonly chain: NamedChain;
  readonly words: RefusalWords;
}

const EMPTY = new Uint8Array();

export function createLightningCheckout<S>(
  endpoint: Endpoint<S>,
  { offers, redeem, sources, network, publicOrigin, protocol, chain, words }: CheckoutOptions<S>,
): Checkout<LightningOrder<S>> {
  const hint = createLightningHint(chain, publicOrigin, endpoint.path);

  function read(ask: Ask): LightningOrder<S> {
    refuseBody(ask);
    const { method, query } = ask;
    const target = pathAndQuery(ask.target);
    const url = `${publicOrigin}${target ?? ''}`;
    const binding = target === null ? null : bindHttp({ method, url, body: EMPTY });
    if (!binding)
      throw new BadParameter([{ path: '', message: 'this request target cannot be bound into an invoice' }]);
    const params = parseParams(endpoint, query);
    endpoint.checkParams(params, sources);
    return { endpoint, params, url, binding, client: ask.client(), identity: ask.identity(), signal: ask.signal() };
  }

  return {
    read,
    demand: async (order, error) => {
      const quote = await offers(order, true);
      return protocol.quote({ ...order, hint: hint(quote, null) }, quote, error);
    },
    sell: redeem,
    refusalReceipt: refusalReceipt(network),
    // A new offer: the open one may be the one that this buyer has paid.
    demandAgain: async (order, refusal, message) => {
      const quote = await offers(order).catch((error: unknown) => {
        if (protocol.needsQuote(message)) throw refusedWithoutOffer(error, refusal.reason);
        return null;
      });
      return protocol.quote({ ...order, hint: hint(quote, words(refusal)) }, quote, refusal.reason);
    },
  };
}

function refusalReceipt(network: string): ({ reason }: PaymentRefused) => Receipt {
  return ({ reason }) => ({
    success: false,
    errorReason: reason,
    transaction: '',
    network: network as Receipt['network'],
  });
}

/** The binding states an empty body, and no data route reads one. */
function refuseBody({ hasBody }: Ask): void {
  if (hasBody)
    throw new BadParameter([{ path: '', message: 'a data route takes no body; send parameters in the query' }]);
}

interface ToolsOptions<S> {
  readonly offers: Offers<S>;
  readonly redeem: Redeem<S>;
  readonly network: string;
}

/** The invoice is bound to the call as received. */
export function createLightningTools<S>({
  offers,
  redeem,
  network,
}: ToolsOptions<S>): QuotedTools<S, LightningOrder<S>> {
  return {
    bind: boundOrder,
    quote: offers,
    sell: redeem,
    refusalReceipt: refusalReceipt(network),
  };
}

function boundOrder<S>({ endpoint, params, url, client, signal, ...call }: ToolOrder<S>): LightningOrder<S> {
  const { server, name, arguments: given, meta } = call;
  const binding = bindMcp({ server, name, arguments: given, metadata: meta });
  if (!binding)
    throw new BadParameter([{ path: 'arguments', message: 'these arguments cannot be bound into an invoice' }]);
  return { endpoint, params, url, binding, client, identity: null, signal };
}

// What an offer's description says to people: the refusal, the price, what to do next, and where the reference shows
// this route. The scheme binds nothing to it. The money is play money where the chain's is.
function createLightningHint({ isPlayMoney }: NamedChain, publicOrigin: string, path: string) {
  const money = isPlayMoney ? 'in bitcoin over Lightning (demo, play money)' : 'in bitcoin over Lightning';
  return (quote: Quote | null, refusal: string | null): string => {
    const terms = quote
      ? `This answer costs ${satsOf(quote)} sat (${quote.priceUsd} USD) ${money}: ` +
        'pay the invoice in accepts, and repeat the request with the preimage.'
      : 'No new invoice could be made; ask again without a payment.';
    return [refusal, terms, `How to pay: ${publicOrigin}${referenceLink(path, 'lightning')}.`]
      .filter(Boolean)
      .join(' ');
  };
}

function satsOf({ invoice }: Quote): bigint {
  return invoice.amountMsat / MSAT_PER_SAT;
}
