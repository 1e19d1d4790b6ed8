import type { Endpoint } from '../catalogue/endpoint.ts';
import { describeParams } from '../catalogue/params.ts';
import { entriesOn, pathOn, type Surface } from '../catalogue/paths.ts';
import { chainTitle, type NamedChain } from '../lib/service.ts';
import { dearestRequirement } from './dearest-requirement.ts';
import type { RequirementOf } from './requirement.ts';

interface LlmsTextOptions {
  readonly chain: NamedChain;
  readonly catalogue: readonly Endpoint<never>[];
  readonly requirementOf: RequirementOf;
  readonly publicOrigin: string;
  /** Whether the USDC routes stand under `/v1/mpp` too. */
  readonly mpp?: boolean;
}

/**
 * The answer of `GET /llms.txt`, in the Markdown of its convention: the routes, their prices and how to pay, short enough for a model to read whole (at
 * most 4,000 characters). Links are paths, so that the length does not depend on the address.
 */
export function createLlmsText(options: LlmsTextOptions): string {
  const { catalogue, requirementOf, chain, publicOrigin, mpp = false } = options;
  const { network = '', asset = '', amount = '0' } = dearestRequirement(catalogue, requirementOf) ?? {};
  const paid = entriesOn(catalogue, 'paid');
  const alone = entriesOn(catalogue, 'lightning').filter((endpoint) => !paid.includes(endpoint));
  const sections = [
    '# percall',
    `> Data by the call at ${publicOrigin}: free summaries, and detail paid per call, in USDC on ${chainTitle(chain)} (\`${network}\`) over x402 or in bitcoin over Lightning (x402, L402, MPP). No account, no key; a failing call costs nothing.`,
    `## How to pay
- \`GET\` a priced path: 402, whose \`PAYMENT-REQUIRED\` header (base64 JSON, x402 version 2) has terms, input schema and an example of the answer.
- Any x402 client pays it, once the asset is allowed: \`setSpendControls({ allowedAssets: [{ network: "${network}", asset: "${asset}", maxAmountPerPayment: "${amount}" }] })\`.
${mpp ? '- By MPP (method `evm`): `/v1/mpp` in place of `/v1/paid`.\n' : ''}- In bitcoin: \`/v1/lightning\` in place of \`/v1/paid\`; x402, L402 and MPP ask for one invoice. Parameters must be good: the answer is made first, then the 402 has its invoice.
- Charged is a 200, or a 410 \`answer_gone\`. An answer with \`charged: "unknown"\` is not decided: present the same payment again, nothing is paid twice.
- Unknown and repeated parameters are refused. Answers are JSON: amounts are strings, times Unix seconds, unknown is null.`,
    ...list('## Priced routes\nGET; USD a call; * is a required parameter.', paid, 'paid'),
    ...list('## In bitcoin alone', alone, 'lightning'),
    ...list('## Free routes', entriesOn(catalogue, 'free'), 'free'),
    `## Documents
- [OpenAPI](/openapi.json): parameters, answers, errors, prices; [priced routes alone](/openapi-priced.json)
- [Search](/v1/market/search): payable routes, here and of other sellers, \`?q=\` in plain words
- [MCP](/mcp): every route as a tool, by POST (streamable HTTP); in bitcoin at /mcp/lightning
- [Prices](/v1/paid), [in bitcoin](/v1/lightning), [x402 manifest](/.well-known/x402)`,
  ];
  return `${sections.join('\n\n')}\n`;
}

/** A section of the list; empty when there are no entries. */
function list(heading: string, entries: readonly Endpoint<never>[], surface: Surface): string[] {
  if (entries.length === 0) return [];
  return [[heading, ...entries.map((endpoint) => line(endpoint, surface))].join('\n')];
}

/** One route: `[currency/rates](/v1/paid/currency/rates): 0.001, Reference rates (base symbols date)`. */
function line(endpoint: Endpoint<never>, surface: Surface): string {
  const params = describeParams(endpoint).map(({ name, required }) => (required ? `${name}*` : name));
  const price = endpoint.price ? `${endpoint.price.usd}, ` : '';
  const takes = params.length > 0 ? ` (${params.join(' ')})` : '';
  return `- [${endpoint.path.slice(1)}](${pathOn(endpoint, surface)}): ${price}${endpoint.label}${takes}`;
}
