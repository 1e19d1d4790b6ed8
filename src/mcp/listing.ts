import type { Tool as Listed } from '@modelcontextprotocol/sdk/types.js';
import type { z } from 'zod';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { describeParams, toJsonSchema } from '../catalogue/params.ts';
import { PREFIX } from '../catalogue/paths.ts';
import { chainTitle, type NamedChain } from '../lib/service.ts';
import {
  askedRail,
  LIGHTNING_ADDRESS,
  MAIN_ADDRESS,
  PAYMENT,
  RAIL,
  type Rail,
  RECEIPT,
  type ToolAddress,
  toolName,
} from './tool.ts';

// What a client reads before its first call: each tool's listing, the schemas of its arguments and of its answers, and
// the server's instructions.

export function listFree(endpoint: Endpoint<never>, chain: NamedChain): Listed {
  return {
    ...common(endpoint),
    description: `${said(endpoint, chain)} Free.`,
    annotations: { title: endpoint.label, readOnlyHint: true, openWorldHint: true },
  };
}

/**
 * Its text gives models the price on the address's rail alone, because they cannot choose another.
 * `network`: CAIP-2, of the chain that the USDC is paid on.
 */
export function listPriced(
  endpoint: Endpoint<never>,
  rails: readonly Rail[],
  chain: NamedChain,
  network: string,
  address: ToolAddress,
): Listed {
  const usd = endpoint.price?.usd ?? '';
  const price =
    askedRail(undefined, rails, address.rail) === 'lightning'
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

function said(endpoint: Endpoint<never>, chain: NamedChain): string {
  const members = Object.keys(endpoint.result.shape);
  const answer = members.length > 0 ? ` Answers JSON: ${members.join(', ')}.` : '';
  // So that a model does not ask this tool about another chain, or for something else.
  const only = endpoint.ofChain ? ` Of ${chainTitle(chain)}, no other chain.` : '';
  const not = endpoint.notFor === null ? '' : ` Not for ${endpoint.notFor}.`;
  return `${endpoint.summary}${only}${answer}${not}`;
}

function freeTool({ freeSummary }: Endpoint<never>): string {
  if (freeSummary === undefined) return '';
  return ` A free summary: ${toolName({ access: 'free', path: freeSummary.slice(PREFIX.free.length) })}.`;
}

/** What tells PaymentRequired and our problems from an answer. Short, because every tool's schema repeats them. */
const PAYMENT_REQUIRED = {
  type: 'object',
  description: 'With isError: the call must be paid for (x402 PaymentRequired)',
  properties: { x402Version: { enum: [2] }, accepts: { type: 'array', items: { type: 'object' } } },
  required: ['x402Version', 'error', 'resource', 'accepts'],
};
const PROBLEM = {
  type: 'object',
  description: 'With isError: why there is no answer',
  properties: { code: { type: 'string' }, detail: { type: 'string' }, charged: { enum: [false, true, 'unknown'] } },
  required: ['code', 'detail', 'charged', 'status', 'requestId'],
};

export function inputSchema(endpoint: Pick<Endpoint<never>, 'params' | 'example'>): Listed['inputSchema'] {
  const params = describeParams(endpoint);
  const properties = params.map(({ name, description, schema }) => [name, { ...schema, description }]);
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    required: params.filter(({ required }) => required).map(({ name }) => name),
    additionalProperties: false,
  };
}

/** Allows failures too: the official client checks every result, and would throw at every demand for payment. */
export function outputSchema(result: z.ZodObject, priced: boolean): NonNullable<Listed['outputSchema']> {
  const { $defs, ...answer } = toJsonSchema(result, 'output');
  const anyOf = priced ? [answer, PAYMENT_REQUIRED, PROBLEM] : [answer, PROBLEM];
  // `$defs` stays at the root, because references start there.
  return { type: 'object', anyOf, ...($defs === undefined ? {} : { $defs }) };
}

/** First for the model, which sets a tool's name and arguments alone, then for the program that calls for it. */
export function instructionsFor(chain: NamedChain, publicOrigin: string, address: ToolAddress): string {
  const isLightning = address.rail === 'lightning';
  const [rail, other] = isLightning
    ? ['in bitcoin over Lightning', `${publicOrigin}${MAIN_ADDRESS.path} sells the same in USDC`]
    : ['in USDC over x402', `${publicOrigin}${LIGHTNING_ADDRESS.path} sells the same in bitcoin over Lightning`];
  return `Data by the call. The chain of these tools is ${chainTitle(chain)}, and no other. \
Tools named free_… just answer; tools named paid_… cost what their description says, with no account and no key.

No argument pays for a call: the program that runs these tools pays ${rail}, if it has a wallet. \
A paid call without a payment comes back with
isError and a sentence that names the price. If it stays so, the program cannot pay: \
tell the user what the call costs, or take a free_ tool.
Bad arguments, failures and refused payments are never charged. charged "unknown" means: \
make the same call again, unchanged.

For the program: the structured content of an unpaid call is x402's PaymentRequired. \
Pay one of its "accepts" and make the same call again with the
payment payload (an object, not base64) in _meta["${PAYMENT}"]; \
the receipt then stands in _meta["${RECEIPT}"] of the result.
The same payment and arguments get the same answer again for 15 minutes; \
a USDC payment from the same address, or under the same
payment-identifier. Over Lightning the answer is fetched first and "accepts" begins with \
a fresh BOLT11 invoice that binds this address, the tool and
its arguments (profile mcp:1, no metadata bound). ${other}; at this address a call asks for a rail by
name with _meta["${RAIL}"]. With ?schemas=full this address lists the schemas of the answers too.`;
}
