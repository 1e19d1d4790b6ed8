import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Encodable, encodeWhenAsked } from '../../http/encodings.ts';
import { tagsWith } from '../../http/openapi/openapi-text.ts';
import { DEMO_BUYER_PATH, type DemoBuyer } from '../demo-buyer.ts';
import { type ExampleTerms, termsOf } from '../examples.ts';
import { type Html, html } from '../html.ts';
import { mountPage } from '../mount-page.ts';
import type { PagesNetwork } from '../pages-deps.ts';
import { encodePage } from '../send.ts';
import { renderPage } from '../shell.ts';
import { type SiteSettings, siteOf } from '../site.ts';
import { inlineCode } from './inline-code.ts';
import { renderNotes } from './notes.ts';
import { type Document, type Operation, readDocument } from './read-document.ts';
import { type RenderContext, renderOperation } from './render-operation.ts';
import { isAskedFor, wordsIn } from './search-operations.ts';

/** What the reference is made of. */
export interface ReferenceDeps {
  readonly config: SiteSettings & {
    readonly network: PagesNetwork;
    readonly protocols: { readonly mpp: boolean };
    readonly rails: { readonly gateway: unknown };
  };
  /** Null: there is no demo, and readers pay with their own wallets. */
  readonly demoBuyer: DemoBuyer | null;
  /** The OpenAPI document, made at the first request. */
  document(): Promise<Document>;
}

/**
 * Mounts `/docs`: the reference, drawn on the server from the OpenAPI document. It is made and compressed once.
 * A search without scripts makes a page for its words alone.
 */
export function mountReference(app: FastifyInstance, deps: ReferenceDeps): void {
  let made: Promise<{ operations: readonly Operation[]; whole: Encodable }> | null = null;
  const make = async () => {
    const operations = readDocument(await deps.document());
    return { operations, whole: encodeWhenAsked(Buffer.from(renderReference(deps, operations, '')), HTML_TYPE) };
  };
  mountPage(app, '/docs', async (request) => {
    made ??= make().catch((error: unknown) => {
      made = null;
      throw error;
    });
    const { operations, whole } = await made;
    const asked = askedIn(request);
    return asked === '' ? whole.encoded() : encodePage(renderReference(deps, operations, asked));
  });
}

const HTML_TYPE = 'text/html; charset=utf-8';
/** Characters of a search. Longer ones are cut. */
const MAX_ASKED = 100;

function askedIn({ query }: FastifyRequest): string {
  const [q] = [(query as { q?: unknown }).q].flat();
  return typeof q === 'string' ? q.trim().slice(0, MAX_ASKED) : '';
}

function renderReference(
  { config, demoBuyer }: ReferenceDeps,
  operations: readonly Operation[],
  asked: string,
): string {
  const { protocols, rails } = config;
  const hasDemoBuyer = demoBuyer !== null;
  const terms = termsOf(config);
  const words = wordsIn(asked);
  const found = operations.filter((operation) => isAskedFor(operation, words));
  const groups = tagsWith(protocols.mpp)
    .map((tag) => ({ ...tag, operations: found.filter((operation) => operation.tag === tag.name) }))
    .filter((group) => group.operations.length > 0);
  const context = contextOf(operations, terms);
  return renderPage({
    site: siteOf(config),
    title: 'API reference',
    path: '/docs',
    description:
      'Every route of the service with parameters, answers, errors, prices and code, to be tried in the page.',
    styles: ['reference.css'],
    scripts: ['reference.js', 'copy.js'],
    body: html`<h1>API reference</h1>
<p class="lead">Every route with its parameters, its answers and code that calls it. Free routes answer at once; a priced one says what it costs, and its terms are shown decoded.
The same for programs: <a href="/openapi.json">/openapi.json</a>; as text: <a href="/llms.txt">/llms.txt</a>.</p>
${renderMoney(config.network, hasDemoBuyer)}
<form class="find" action="/docs" method="get" role="search" aria-label="Routes">
<label for="find">Find a route</label><input type="search" id="find" name="q" value="${asked}" maxlength="${MAX_ASKED}" placeholder="wallet, dns, convert …" autocomplete="off"><button type="submit">Find</button>
</form>
<p id="found" role="status">${foundText(found.length, operations.length, asked)}</p>
<nav aria-label="Groups of routes"><ul class="routes">${groups.map(({ name }) => html`<li><a href="#group-${name}">${name}</a></li>`)}<li><a href="#notes">paying, errors</a></li></ul></nav>
<p id="reference-answer" class="unseen" role="status"${hasDemoBuyer && html` data-demo-buyer="${DEMO_BUYER_PATH}"`}${chainForWallets(config.network)}></p>
${groups.map((group) => renderGroup(group, context))}
${renderNotes({ hasGateway: rails.gateway !== null })}`,
  });
}

type Network = ReferenceDeps['config']['network'];

/** Where the money for a payment comes from, in one sentence. */
function renderMoney({ name, isPlayMoney, getUsdcUrl }: Network, hasDemoBuyer: boolean): Html | null {
  if (isPlayMoney)
    return html`<p id="money">The money is play money: ${
      hasDemoBuyer ? 'the demo’s buyer has it, and you need none' : 'there is none to buy'
    }.</p>`;
  if (getUsdcUrl === null) return null;
  const link = html`<a href="${getUsdcUrl}" rel="noopener noreferrer">how to get it</a>`;
  return html`<p id="money">A wallet pays with USDC on ${name}: ${link}.</p>`;
}

/** The chain as EIP-3085 gives it to a wallet. An RPC URL of the operator's own may hold a key, so it is never here. */
function chainForWallets({ chainId, name, walletRpcUrls, explorerUrl }: Network): Html | null {
  if (walletRpcUrls.length === 0) return null;
  const chain = {
    chainId: `0x${chainId.toString(16)}`,
    chainName: name,
    rpcUrls: walletRpcUrls,
    nativeCurrency: { name: 'USDC', symbol: 'USDC', decimals: 18 },
    ...(explorerUrl !== null && { blockExplorerUrls: [explorerUrl] }),
  };
  return html` data-chain="${JSON.stringify(chain)}"`;
}

function foundText(found: number, all: number, asked: string): Html {
  if (asked === '') return html`${all} routes.`;
  if (found === 0) return html`No route has <q>${asked}</q>. <a href="/docs">All ${all} routes</a>`;
  return html`${found} of ${all} routes for <q>${asked}</q>. <a href="/docs">All routes</a>`;
}

function renderGroup(
  { name, description, operations }: { name: string; description: string; operations: readonly Operation[] },
  context: RenderContext,
): Html {
  return html`<section class="group" id="group-${name}" aria-labelledby="group-${name}-title">
<h2 id="group-${name}-title">${name}</h2>
<p>${inlineCode(description)}</p>
${operations.map((operation) => renderOperation(operation, context))}
</section>
`;
}

/** A route under `/v1/lightning` or `/v1/mpp` answers what its twin under `/v1/paid` answers. */
function contextOf(operations: readonly Operation[], terms: ExampleTerms): RenderContext {
  const paidAt = new Map(
    operations.filter(({ tag }) => tag === 'paid').map((operation) => [operation.path, operation]),
  );
  return {
    terms,
    twinOf: ({ tag, path }) =>
      tag === 'paid' ? null : (paidAt.get(path.replace(SOLD_ELSEWHERE, '/v1/paid/')) ?? null),
  };
}

const SOLD_ELSEWHERE = /^\/v1\/(lightning|mpp)\//;
