import type { Tool as Listed } from '@modelcontextprotocol/sdk/types.js';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { PREFIX } from '../catalogue/paths.ts';
import { readsChain } from '../catalogue/reads-chain.ts';
import { chainTitle, type NamedChain } from '../lib/named-chain.ts';
import { RAIL } from './meta.ts';
import type { Rail } from './rails.ts';
import { inputSchema, outputSchema } from './schemas.ts';
import { toolName } from './tool-name.ts';

const PAID_BY: Record<Rail, string> = {
  usdc: 'USDC over x402',
  lightning: `bitcoin over Lightning (ask with _meta["${RAIL}"]: "lightning")`,
};
/** For tools that are sold for bitcoin only, so there is no rail to ask for. */
const SATS_ALONE = 'bitcoin over Lightning';

/** The listing of a free entry as a tool. */
export function listFree(endpoint: Endpoint<never>, chain: NamedChain): Listed {
  return {
    ...common(endpoint, false),
    description: `${endpoint.summary}${ofChain(endpoint, chain)} Free.`,
    annotations: { title: endpoint.label, readOnlyHint: true, openWorldHint: true },
  };
}

/** The listing of a priced entry as a tool. The text gives the price to models, `_meta` gives it to programs. */
export function listPriced(endpoint: Endpoint<never>, rails: readonly Rail[], chain: NamedChain): Listed {
  const { label, summary, price } = endpoint;
  const usd = price?.usd ?? '';
  const ways =
    rails.length === 1 && rails[0] === 'lightning' ? SATS_ALONE : rails.map((rail) => PAID_BY[rail]).join(', or ');
  return {
    ...common(endpoint, true),
    description: `${summary}${ofChain(endpoint, chain)} Costs ${usd} USD a call, in ${ways}.${freeTool(endpoint)}`,
    // Not read-only, because a call that carries a payment spends it.
    annotations: { title: label, readOnlyHint: false, destructiveHint: false, openWorldHint: true },
    _meta: { 'percall/price': { priceUsd: usd, rails: [...rails] } },
  };
}

/** Names the chain, so that a model does not ask this tool about another one. */
function ofChain(endpoint: Endpoint<never>, chain: NamedChain): string {
  return readsChain(endpoint) ? ` Of ${chainTitle(chain)}, no other chain.` : '';
}

function common(
  endpoint: Endpoint<never>,
  priced: boolean,
): Pick<Listed, 'name' | 'title' | 'inputSchema' | 'outputSchema'> {
  return {
    name: toolName(endpoint),
    title: endpoint.label,
    inputSchema: inputSchema(endpoint),
    outputSchema: outputSchema(endpoint.result, priced),
  };
}

function freeTool({ freeSummary }: Endpoint<never>): string {
  if (freeSummary === undefined) return '';
  return ` A free summary: ${toolName({ access: 'free', path: freeSummary.slice(PREFIX.free.length) })}.`;
}
