import { BadParameter } from '../../../errors.ts';
import type { QuotedTools, ToolOrder } from '../../counter.ts';
import { bindMcp } from '../../lnbtc/binding.ts';
import { refusalReceipt } from './counter.ts';
import type { Offers } from './offers.ts';
import type { LightningOrder } from './order.ts';
import type { Redeem } from './redeem.ts';

interface ToolsOptions<S> {
  readonly offers: Offers<S>;
  readonly redeem: Redeem<S>;
  readonly network: string;
}

/** Sells tool calls over Lightning. The invoice is bound to the call as received. */
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
