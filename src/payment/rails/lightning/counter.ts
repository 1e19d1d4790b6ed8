import type { Endpoint } from '../../../catalogue/endpoint.ts';
import { parseParams } from '../../../catalogue/params.ts';
import { BadParameter } from '../../../errors.ts';
import type { NamedChain } from '../../../lib/named-chain.ts';
import { pathAndQuery } from '../../../lib/request-target.ts';
import type { Ask, Counter } from '../../counter.ts';
import { bindHttp } from '../../lnbtc/binding.ts';
import type { QuotedProtocol, Receipt } from '../../protocol.ts';
import type { PaymentRefused, RefusalWords } from '../../refusal.ts';
import { createLightningHint } from './hint.ts';
import type { Offers } from './offers.ts';
import type { LightningOrder } from './order.ts';
import { refusedWithoutOffer } from './paid-errors.ts';
import type { Redeem } from './redeem.ts';

interface CounterOptions<S> {
  readonly offers: Offers<S>;
  readonly redeem: Redeem<S>;
  readonly sources: S;
  readonly network: string;
  /** The origin that invoices are bound to, whatever the Host header says. */
  readonly publicOrigin: string;
  readonly protocol: Pick<QuotedProtocol, 'quote' | 'needsQuote'>;
  /** The chain of the service's own data. Its name says whether all of the service's money is play money. */
  readonly chain: NamedChain;
  readonly words: RefusalWords;
}

const EMPTY = new Uint8Array();

/** The counter of an endpoint that is quoted for each request. It checks the parameters before any payment, and before an invoice is made. */
export function createLightningCounter<S>(
  endpoint: Endpoint<S>,
  { offers, redeem, sources, network, publicOrigin, protocol, chain, words }: CounterOptions<S>,
): Counter<LightningOrder<S>> {
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
    // The refusal carries a new offer. The open offer may be the one that this buyer has paid.
    demandAgain: async (order, refusal, message) => {
      const quote = await offers(order).catch((error: unknown) => {
        if (protocol.needsQuote(message)) throw refusedWithoutOffer(error, refusal.reason);
        return null;
      });
      return protocol.quote({ ...order, hint: hint(quote, words(refusal)) }, quote, refusal.reason);
    },
  };
}

/** Makes the receipt that goes with a refusal, on a network of the scheme. */
export function refusalReceipt(network: string): ({ reason }: PaymentRefused) => Receipt {
  return ({ reason }) => ({
    ...{ success: false, errorReason: reason, transaction: '' },
    network: network as Receipt['network'],
  });
}

/** Throws BadParameter for a request with a body. The binding states an empty body, and no data route reads one. */
function refuseBody({ hasBody }: Ask): void {
  if (hasBody)
    throw new BadParameter([{ path: '', message: 'a data route takes no body; send parameters in the query' }]);
}
