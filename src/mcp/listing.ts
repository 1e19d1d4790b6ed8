import type { Tool as Listed } from '@modelcontextprotocol/sdk/types.js';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { notFor } from '../catalogue/not-for.ts';
import { PREFIX } from '../catalogue/paths.ts';
import { readsChain } from '../catalogue/reads-chain.ts';
import { chainTitle, type NamedChain } from '../lib/named-chain.ts';
import type { Door } from './door.ts';
import { askedRail, type Rail } from './rails.ts';
import { inputSchema } from './schemas.ts';
import { toolName } from './tool-name.ts';

/** What a priced tool costs, and where its USDC is. */
export interface Terms {
  readonly rails: readonly Rail[];
  readonly chain: NamedChain;
  /** The CAIP-2 name of the chain that the USDC is paid on. */
  readonly network: string;
}

/** The listing of a free entry as a tool. */
export function listFree(endpoint: Endpoint<never>, chain: NamedChain): Listed {
  return {
    ...common(endpoint),
    description: `${said(endpoint, chain)} Free.`,
    annotations: { title: endpoint.label, readOnlyHint: true, openWorldHint: true },
  };
}

/**
 * The listing of a priced entry at an address. The text gives the price to models, `_meta` gives it to programs. It names the rail of the address
 * alone, because a model cannot choose another.
 */
export function listPriced(endpoint: Endpoint<never>, { rails, chain, network }: Terms, door: Door): Listed {
  const usd = endpoint.price?.usd ?? '';
  const price =
    askedRail(undefined, rails, door.rail) === 'lightning'
      ? `${usd} USD a call, paid in bitcoin over Lightning`
      : `${usd} USDC a call, paid on ${chainTitle(chain)} (${network})`;
  return {
    ...common(endpoint),
    description: `${said(endpoint, chain)} Costs ${price}.${freeTool(endpoint)}`,
    // Not read-only, because a call that carries a payment spends it.
    annotations: { title: endpoint.label, readOnlyHint: false, destructiveHint: false, openWorldHint: true },
    _meta: { 'percall/price': { priceUsd: usd, rails: [...rails] } },
  };
}

function common(endpoint: Endpoint<never>): Pick<Listed, 'name' | 'title' | 'inputSchema'> {
  return { name: toolName(endpoint), title: endpoint.label, inputSchema: inputSchema(endpoint) };
}

/** What a tool is for, what comes back, and what it is not for. */
function said(endpoint: Endpoint<never>, chain: NamedChain): string {
  const members = Object.keys(endpoint.result.shape);
  const answer = members.length > 0 ? ` Answers JSON: ${members.join(', ')}.` : '';
  const other = notFor(endpoint);
  return `${endpoint.summary}${ofChain(endpoint, chain)}${answer}${other === null ? '' : ` Not for ${other}.`}`;
}

/** Names the chain, so that a model does not ask this tool about another one. */
function ofChain(endpoint: Endpoint<never>, chain: NamedChain): string {
  return readsChain(endpoint) ? ` Of ${chainTitle(chain)}, no other chain.` : '';
}

function freeTool({ freeSummary }: Endpoint<never>): string {
  if (freeSummary === undefined) return '';
  return ` A free summary: ${toolName({ access: 'free', path: freeSummary.slice(PREFIX.free.length) })}.`;
}
