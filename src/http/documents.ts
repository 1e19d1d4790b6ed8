import { readFileSync } from 'node:fs';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { describeParams } from '../catalogue/params.ts';
import { API_CATALOG, entriesOn, pathOn, type Surface, surfacesOf } from '../catalogue/paths.ts';
import type { Config } from '../config.ts';
import { chainTitle, type NamedChain, SERVICE_VERSION } from '../lib/service.ts';
import { formatUnits, USDC_DECIMALS } from '../lib/units.ts';

// `llms.txt`, the price list and the x402 manifest, with terms of payment as the payment module gives them; then what
// agents look for: the skill, the API catalog (RFC 9727) and the registration of ERC-8004.

export interface Described {
  readonly catalogue: readonly Endpoint<never>[];
  readonly chain: NamedChain;
  readonly publicOrigin: string;
  readonly requirementOf: RequirementOf;
  /** As its 402 offers them. */
  acceptsOf(endpoint: Endpoint<never>): readonly Requirement[];
}

export type RequirementOf = (endpoint: Endpoint<never>) => Requirement;

export interface Requirement {
  readonly scheme: string;
  readonly network: string;
  readonly asset: string;
  readonly amount: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
}

type LlmsTextOptions = Omit<Described, 'acceptsOf'> & { readonly mpp?: boolean };

const MOST_LLMS_TEXT = 4000;

/** At most 4,000 characters, for models; at need without optional parameters. Links are paths, to stay short. */
export function createLlmsText(options: LlmsTextOptions): string {
  const whole = writeLlmsText(options, true);
  return whole.length <= MOST_LLMS_TEXT ? whole : writeLlmsText(options, false);
}

function writeLlmsText(options: LlmsTextOptions, isWhole: boolean): string {
  const { catalogue, requirementOf, chain, publicOrigin, mpp = false } = options;
  const { network = '', asset = '', amount = '0' } = dearestRequirement(catalogue, requirementOf) ?? {};
  const paid = entriesOn(catalogue, 'paid');
  const alone = entriesOn(catalogue, 'lightning').filter((endpoint) => !paid.includes(endpoint));
  const sections = [
    '# percall',
    `> Data by the call at ${publicOrigin}: free summaries, and detail paid per call, in USDC on ${chainTitle(chain)} \
(\`${network}\`) over x402 or in bitcoin over Lightning (x402, L402, MPP). No account, no key; a failing call costs \
nothing.`,
    `## How to pay
- \`GET\` a priced path: 402, whose \`PAYMENT-REQUIRED\` header (base64 JSON, x402 version 2) has terms, input schema \
and an example of the answer.
- Any x402 client pays it, once the asset is allowed: \`setSpendControls({ allowedAssets: [{ network: "${network}", \
asset: "${asset}", maxAmountPerPayment: "${amount}" }] })\`.
${mpp ? '- By MPP (method `evm`): `/v1/mpp` in place of `/v1/paid`.\n' : ''}- In bitcoin: \`/v1/lightning\` in place \
of \`/v1/paid\`; x402, L402 and MPP ask for one invoice. Parameters must be good: the answer is made first, then the \
402 has its invoice.
- Charged is a 200, or a 410 \`answer_gone\`. An answer with \`charged: "unknown"\` is not decided: present the same \
payment again, nothing is paid twice.
- Unknown and repeated parameters are refused. Answers are JSON: amounts are strings, times Unix seconds, unknown is \
null.`,
    ...list('## Priced routes\nGET; USD a call; * is a required parameter.', paid, 'paid', isWhole),
    ...list('## In bitcoin alone', alone, 'lightning', isWhole),
    ...list('## Free routes', entriesOn(catalogue, 'free'), 'free', isWhole),
    `## Documents
- [OpenAPI](/openapi.json): parameters, answers, errors, prices; [priced routes alone](/openapi-priced.json)
- [Search](/v1/market/search): payable routes, here and of other sellers, \`?q=\` in plain words
- [Skill](/SKILL.md): how to find, price, pay, never twice
- [MCP](/mcp): every route as a tool, by POST (streamable HTTP); in bitcoin at /mcp/lightning
- [Prices](/v1/paid), [in bitcoin](/v1/lightning), [x402 manifest](/.well-known/x402)`,
  ];
  return `${sections.join('\n\n')}\n`;
}

/** With it as ceiling a client can buy any route. Undefined when none is sold. */
export function dearestRequirement(
  catalogue: readonly Endpoint<never>[],
  requirementOf: RequirementOf,
): Requirement | undefined {
  const [first, ...more] = entriesOn(catalogue, 'paid').map(requirementOf);
  return more.reduce((most, next) => (most && BigInt(most.amount) >= BigInt(next.amount) ? most : next), first);
}

function list(heading: string, entries: readonly Endpoint<never>[], surface: Surface, isWhole: boolean): string[] {
  if (entries.length === 0) return [];
  return [[heading, ...entries.map((endpoint) => line(endpoint, surface, isWhole))].join('\n')];
}

/** `[currency/rates](/v1/paid/currency/rates): 0.001, Reference rates (base symbols date)`. */
function line(endpoint: Endpoint<never>, surface: Surface, isWhole: boolean): string {
  const named = describeParams(endpoint).filter(({ required }) => isWhole || required);
  const params = named.map(({ name, required }) => (required ? `${name}*` : name));
  const price = endpoint.price ? `${endpoint.price.usd}, ` : '';
  const takes = params.length > 0 ? ` (${params.join(' ')})` : '';
  return `- [${endpoint.path.slice(1)}](${pathOn(endpoint, surface)}): ${price}${endpoint.label}${takes}`;
}

/** A route has its own `accepts` where its terms are others than those of the list's head. */
export function createPriceList(options: Described & { readonly nowSeconds: number }) {
  const { catalogue, requirementOf, acceptsOf, chain, publicOrigin, nowSeconds } = options;
  const priced = entriesOn(catalogue, 'paid').flatMap((endpoint) =>
    endpoint.price ? [{ endpoint, price: endpoint.price }] : [],
  );
  const isPlain = (endpoint: Endpoint<never>) => acceptsOf(endpoint).includes(requirementOf(endpoint));
  const [first] = priced;
  const plain = priced.find(({ endpoint }) => isPlain(endpoint)) ?? null;
  const terms = plain ? requirementOf(plain.endpoint) : first && acceptsOf(first.endpoint)[0];
  return {
    scheme: terms?.scheme ?? null,
    network: terms?.network ?? null,
    networkName: chain.name,
    playMoney: chain.isPlayMoney,
    asset: terms?.asset ?? null,
    payTo: terms?.payTo ?? null,
    currency: 'USD',
    routes: priced.map(({ endpoint, price }) => ({
      route: `GET ${pathOn(endpoint, 'paid')}`,
      priceUsd: price.usd,
      amount: price.units.toString(),
      ...(acceptsOf(endpoint).length === 1 && isPlain(endpoint) ? {} : { accepts: acceptsOf(endpoint) }),
      label: endpoint.label,
      summary: endpoint.summary,
      freeSummary: endpoint.freeSummary ?? null,
      params: describeParams(endpoint).map(({ name, required, description }) => ({ name, required, description })),
    })),
    source: { name: 'the price list of this service', url: `${publicOrigin}/v1/paid`, retrievedAt: nowSeconds },
  };
}

/** The form of drafts that are not final: `items`, and `resources` for older crawlers. */
export function createWellKnown({
  catalogue,
  acceptsOf,
  publicOrigin,
}: Pick<Described, 'catalogue' | 'acceptsOf' | 'publicOrigin'>) {
  const items = entriesOn(catalogue, 'paid').map((endpoint) => ({
    resource: publicOrigin + pathOn(endpoint, 'paid'),
    type: 'http',
    x402Version: 2,
    accepts: acceptsOf(endpoint),
    metadata: {
      method: 'GET',
      name: endpoint.label,
      description: endpoint.summary,
      mimeType: 'application/json',
      priceUsd: endpoint.price?.usd ?? null,
      params: describeParams(endpoint).map((param) => ({ ...param, in: 'query' })),
      output: { example: endpoint.example.result },
    },
  }));
  const at = (path: string) => publicOrigin + path;
  return {
    x402Version: 2,
    version: 1,
    name: 'percall',
    resources: items.map(({ resource }) => resource),
    items,
    documents: {
      openapi: at('/openapi.json'),
      openapiPriced: at('/openapi-priced.json'),
      llms: at('/llms.txt'),
      prices: at('/v1/paid'),
      lightning: at('/v1/lightning'),
      search: at('/v1/market/search'),
      mcp: at('/mcp'),
    },
  };
}

// What agents and registries look for by convention. The skill's prose is `skill.md`.

export interface AgentFacts extends Pick<Described, 'catalogue' | 'publicOrigin' | 'requirementOf'> {
  readonly chain: Pick<Config['network'], 'name' | 'isPlayMoney' | 'getUsdcUrl' | 'getUsdcHow'>;
  readonly lightning: boolean;
  readonly mpp: boolean;
}

/** `{{name}}` is a value; `{{name?text}}` is a text where the value is true. */
const PLACE = /\{\{(\w+)(?:\?([^}]*))?\}\}/g;

/** At most 6,000 bytes: with it and an HTTP client alone an agent finds, prices and buys an answer, and pays once. */
export function createSkill({ catalogue, chain, publicOrigin, requirementOf, lightning, mpp }: AgentFacts): string {
  const { network = '', asset = '', amount = '0' } = dearestRequirement(catalogue, requirementOf) ?? {};
  const sold = [...familiesOf(catalogue)].map(([family, entries]) => `- ${family}: ${entries.map(inSkill).join(', ')}`);
  const free = entriesOn(catalogue, 'free').map((entry) => `\`${pathOn(entry, 'free')}\``);
  const values: Readonly<Record<string, string | boolean>> = {
    lightning,
    mpp,
    network,
    asset,
    amount,
    topics: topicsOf(catalogue),
    chain: chainTitle(chain),
    chainId: network.replace(/^.*:/, ''),
    version: SERVICE_VERSION,
    origin: publicOrigin,
    sold: sold.join('\n'),
    free: free.join(', '),
    usdc: formatUnits(BigInt(amount), USDC_DECIMALS),
    money: moneyText(chain),
  };
  const template = readFileSync(new URL('./skill.md', import.meta.url), 'utf8');
  return template.replace(PLACE, (_place, name: string, text?: string) =>
    text === undefined ? String(values[name]) : values[name] ? text : '',
  );
}

function inSkill(endpoint: Endpoint<never>): string {
  const alone = surfacesOf(endpoint).includes('paid') ? '' : ' (bitcoin alone)';
  return `${endpoint.path.split('/').slice(2).join('/')} ${endpoint.price?.usd}${alone}`;
}

function moneyText({ name, isPlayMoney, getUsdcUrl, getUsdcHow }: AgentFacts['chain']): string {
  if (isPlayMoney) return 'The money here is play money: there is none to buy.';
  const holds = `The wallet needs nothing but USDC on ${name}: signing costs no gas.`;
  return getUsdcUrl === null ? holds : `${holds} ${getUsdcHow ?? 'How to get it'}: ${getUsdcUrl}`;
}

/** What a family of routes is about, by the first segment of their paths; another one stands for itself. */
const TOPICS: Readonly<Record<string, string>> = {
  fees: 'gas fees',
  deploys: 'contract deploys',
  rpc: 'RPC health',
  fx: 'executed FX rates',
  market: 'market prices',
  chain: 'wallets, tokens and transactions',
  web: 'web pages as text',
  packages: 'npm and PyPI packages and advisories',
  domains: 'DNS and domain registrations',
  currency: 'exchange rates',
  wiki: 'Wikipedia',
};

function topicsOf(catalogue: readonly Endpoint<never>[]): string {
  return [...familiesOf(catalogue).keys()].map((family) => TOPICS[family] ?? family).join(', ');
}

/** The priced entries by family, without the self-test, which sells nothing. */
export function familiesOf(catalogue: readonly Endpoint<never>[]): Map<string, Endpoint<never>[]> {
  const priced = catalogue.filter(({ access }) => access === 'paid');
  const families = Map.groupBy(priced, ({ path }) => path.split('/')[1] ?? '');
  families.delete('selftest');
  return families;
}

type LinksFacts = Pick<AgentFacts, 'publicOrigin' | 'lightning'>;

/** RFC 9727: the APIs, and for each what describes it, as a linkset (RFC 9264). */
export function createApiCatalog({ publicOrigin, lightning }: LinksFacts) {
  const to = (path: string, type: string, title: string) => ({ href: publicOrigin + path, type, title });
  const skill = to('/SKILL.md', 'text/markdown', 'How agents find, price, pay and retry');
  const addresses = ['/v1/paid', ...(lightning ? ['/v1/lightning'] : []), '/v1/market/search', '/mcp'];
  return {
    linkset: [
      { anchor: publicOrigin + API_CATALOG, item: addresses.map((path) => ({ href: publicOrigin + path })) },
      {
        anchor: `${publicOrigin}/`,
        'service-desc': [
          to('/openapi.json', 'application/json', 'OpenAPI 3.1'),
          to('/openapi-priced.json', 'application/json', 'OpenAPI 3.1 of the priced routes'),
        ],
        'service-doc': [
          skill,
          to('/llms.txt', 'text/plain', 'Every route in short, for models'),
          to('/docs', 'text/html', 'The reference for people'),
        ],
        'service-meta': [
          to('/.well-known/x402', 'application/json', 'The USDC routes with their terms'),
          to('/v1/paid', 'application/json', 'The prices'),
          to('/.well-known/agent-registration.json', 'application/json', 'ERC-8004'),
        ],
        status: [to('/readyz', 'application/json', 'Whether it can serve and sell now')],
      },
      { anchor: `${publicOrigin}/mcp`, 'service-doc': [skill] },
    ],
  };
}

/**
 * ERC-8004's registration file. Without `registrations` it serves discovery alone, as the ERC says. `mcpVersion`: the
 * newest that the tools server speaks.
 */
export function createAgentRegistration(
  { publicOrigin, catalogue, chain, lightning }: Omit<AgentFacts, 'mpp' | 'requirementOf'>,
  registrations: Config['agents']['registrations'],
  mcpVersion: string,
) {
  const rails = `USDC on ${chainTitle(chain)}${lightning ? ' or bitcoin over Lightning' : ''}`;
  return {
    type: 'https://eips.ethereum.org/EIPS/eip-8004#registration-v1',
    name: 'percall',
    description: `Data by the call: ${topicsOf(catalogue)}. Paid per call in ${rails}; a failing call costs nothing.`,
    image: `${publicOrigin}/preview.png`,
    services: [
      { name: 'web', endpoint: `${publicOrigin}/` },
      { name: 'MCP', endpoint: `${publicOrigin}/mcp`, version: mcpVersion },
      { name: 'x402', endpoint: `${publicOrigin}/.well-known/x402`, version: '2' },
      { name: 'OpenAPI', endpoint: `${publicOrigin}/openapi.json`, version: '3.1.0' },
      { name: 'skill', endpoint: `${publicOrigin}/SKILL.md` },
    ],
    x402Support: catalogue.some(({ access }) => access === 'paid'),
    active: true,
    registrations,
  };
}
