import type { FastifyInstance, FastifyRequest } from 'fastify';
import { encodeWhenAsked } from '../http/answers.ts';
import { tagsWith } from '../http/openapi/text.ts';
import { makeOnce } from '../lib/tasks.ts';
import { DEMO_BUYER_PATH, type DemoBuyer } from './demo-buyer.ts';
import { callExamples, type ExampleTerms, termsOf } from './examples.ts';
import { type Html, html, inlineCode, renderCode, renderHeads, renderPair } from './html.ts';
import type { PagesNetwork } from './page-parts.ts';
import { type Answer, type Document, type Operation, type Param, readDocument } from './reference-document.ts';
import { encodePage, mountPage } from './send.ts';
import { renderPage, type SiteSettings, siteOf } from './shell.ts';

// `/docs`, the reference, drawn on the server from the OpenAPI document.

interface ReferenceDeps {
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

/** The whole page is made and compressed once, a page for a search at each request. */
export function mountReference(app: FastifyInstance, deps: ReferenceDeps): void {
  const made = makeOnce(async () => {
    const operations = readDocument(await deps.document());
    return { operations, whole: encodeWhenAsked(Buffer.from(renderReference(deps, operations, '')), HTML_TYPE) };
  });
  mountPage(app, '/docs', async (request) => {
    const { operations, whole } = await made();
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
  const { protocols } = config;
  const hasDemoBuyer = demoBuyer !== null;
  const terms = termsOf(config);
  const words = wordsIn(asked);
  const found = operations.filter((operation) => isAskedFor(operation, words));
  const groups = tagsWith(protocols.mpp)
    .map((tag) => ({ ...tag, operations: found.filter((operation) => operation.tag === tag.name) }))
    .filter((group) => group.operations.length > 0);
  const context = contextOf(operations, terms);
  const links = groups.map(({ name }) => html`<li><a href="#group-${name}">${name}</a></li>`);
  return renderPage({
    site: siteOf(config),
    title: 'API reference',
    path: '/docs',
    description:
      'Every route of the service with parameters, answers, errors, prices and code, to be tried in the page.',
    styles: ['reference.css'],
    scripts: ['reference.js', 'copy.js'],
    body: html`<h1>API reference</h1>
<p class="lead">Every route with its parameters, its answers and code that calls it. Free routes answer at once; a \
priced one says what it costs, and its terms are shown decoded.
The same for programs: <a href="/openapi.json">/openapi.json</a>; as text: <a href="/llms.txt">/llms.txt</a>.</p>
${renderMoney(config.network, hasDemoBuyer)}
<form class="find" action="/docs" method="get" role="search" aria-label="Routes">
<label for="find">Find a route</label>\
<input type="search" id="find" name="q" value="${asked}" maxlength="${MAX_ASKED}" placeholder="wallet, dns, convert …" \
autocomplete="off"><button type="submit">Find</button>
</form>
<p id="found" role="status">${foundText(found.length, operations.length, asked)}</p>
<nav aria-label="Groups of routes"><ul class="routes">${links}<li><a href="#notes">paying, errors</a></li></ul></nav>
${renderSpoken(config.network, hasDemoBuyer)}
${groups.map((group) => renderGroup(group, context))}
${renderNotes({ hasGateway: config.rails.gateway !== null })}`,
  });
}

function wordsIn(asked: string): string[] {
  return asked
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
}

/** Whether every word stands in what an operation is called, says and takes. The page's script compares that too. */
function isAskedFor(operation: Operation, words: readonly string[]): boolean {
  const text = searchedText(operation);
  return words.every((word) => text.includes(word));
}

function searchedText({ method, path, title, text, params, priceUsd }: Operation): string {
  const cost = priceUsd === null ? ['free'] : [];
  return [method, path, title, text, ...params.map(({ name }) => name), ...cost].join(' ').toLowerCase();
}

/** Where scripts say what became of a call. It tells them who can pay: the demo's buyer, and the chain for wallets. */
export function renderSpoken(network: PagesNetwork, hasDemoBuyer: boolean): Html {
  const buyer = hasDemoBuyer && html` data-demo-buyer="${DEMO_BUYER_PATH}"`;
  return html`<p id="reference-answer" class="unseen" role="status"${[buyer, chainForWallets(network)]}></p>`;
}

export function renderMoney({ name, isPlayMoney, getUsdcUrl }: PagesNetwork, hasDemoBuyer: boolean): Html | null {
  if (isPlayMoney)
    return html`<p id="money">The money is play money: ${
      hasDemoBuyer ? 'the demo’s buyer has it, and you need none' : 'there is none to buy'
    }.</p>`;
  if (getUsdcUrl === null) return null;
  const link = html`<a href="${getUsdcUrl}" rel="noopener noreferrer">how to get it</a>`;
  return html`<p id="money">A wallet pays with USDC on ${name}: ${link}.</p>`;
}

/** The chain as EIP-3085 gives it to a wallet. An RPC URL of the operator's own may hold a key, so it is never here. */
function chainForWallets({ chainId, name, walletRpcUrls, explorerUrl }: PagesNetwork): Html | null {
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

interface RenderContext {
  readonly terms: ExampleTerms;
  twinOf(operation: Operation): Operation | null;
}

function renderOperation(operation: Operation, context: RenderContext): Html {
  const { id, method, path, title, text, priceUsd } = operation;
  return html`<details class="op" id="${id}" data-find="${searchedText(operation)}">
<summary><span class="method ${method.toLowerCase()}">${method}</span> <code class="path">${path}</code> \
<span class="op-title">${inlineCode(title)}</span>\
${priceUsd !== null && html` <span class="op-price">${priceUsd} USD</span>`}</summary>
<div class="op-body">
${text && html`<p>${inlineCode(text)}</p>`}
${renderForm(operation)}
<h4>In code</h4>
${callExamples(operation, context.terms).map(({ language, note, code }) =>
  renderCode({ id: `${id}-${language.toLowerCase()}`, title: language, note, code, level: 5 }),
)}
<h4>Answers</h4>
${renderAnswers(operation, context)}
</div>
</details>
`;
}

/** A form. Without scripts it works for a GET without path parameters: the browser opens the answer, or the 402. */
export function renderForm({ id, method, path, priceUsd, params, body }: Operation, submit = 'Try it'): Html {
  const isPlain = method === 'GET' && !path.includes('{');
  const price = priceUsd !== null && html` data-price="${priceUsd}"`;
  const target = isPlain ? html` action="${path}" method="get"` : html` hidden`;
  const field =
    body !== null &&
    html`<p class="wide"><label for="${id}-body">JSON body</label>\
<textarea id="${id}-body" name="body" rows="4" spellcheck="false">${body}</textarea></p>`;
  return html`<form class="try" data-path="${path}" data-try="${method}"${price}${target}>
${params.map((param) => renderParam(id, param))}
${field}
<p class="go"><button type="submit">${submit}</button></p>
<div class="outcome" hidden></div>
</form>`;
}

function renderParam(operation: string, { name, isRequired, text, example, choices, isInteger }: Param): Html {
  const id = `${operation}-${name}`;
  // A browser without scripts would send an empty field, which is a fault. The script enables it.
  const state = isRequired ? html` required` : example === '' && html` disabled data-enable`;
  const shared = html`id="${id}" name="${name}" aria-describedby="${id}-text"${state}`;
  const options = choices.map((choice) => html`<option${choice === example && html` selected`}>${choice}</option>`);
  const field =
    choices.length > 0
      ? html`<select ${shared}>${!isRequired && html`<option value=""></option>`}${options}</select>`
      : html`<input ${shared} value="${example}"${isInteger && html` inputmode="numeric"`} autocomplete="off" \
spellcheck="false">`;
  const required = isRequired && html` <span class="required">required</span>`;
  return html`<p><label for="${id}"><code>${name}</code>${required}</label>${field}\
<small id="${id}-text">${inlineCode(text)}</small></p>
`;
}

function renderAnswers(operation: Operation, context: RenderContext): Html {
  const twin = context.twinOf(operation);
  const isGood = ({ status }: Answer): boolean => status.startsWith('2');
  const good = operation.answers.filter(isGood).map((answer) =>
    twin
      ? html`<p><strong>${answer.status}</strong> The same answer as \
<a href="/docs#${twin.id}"><code>${twin.path}</code></a>.</p>`
      : renderGood(operation, answer),
  );
  const others = operation.answers
    .filter((answer) => !isGood(answer))
    .map(({ status, text }) => renderPair(status, inlineCode(text)));
  return html`${good}
${others.length > 0 && html`<dl class="statuses">${others}</dl>`}`;
}

function renderGood({ id }: Operation, { status, text, fields, example: code }: Answer): Html {
  const rows = fields.map(
    (field) =>
      html`<tr><th scope="row"><code>${field.name}</code></th><td>${field.type}</td>\
<td>${inlineCode(field.text)}</td></tr>
`,
  );
  return html`<p><strong>${status}</strong> ${inlineCode(text)}</p>
${
  fields.length > 0 &&
  html`<div class="scroll" role="region" aria-label="Fields of the answer ${status}" tabindex="0"><table class="fields">
${renderHeads(['Field', 'Type', 'Meaning'])}
<tbody>${rows}</tbody></table></div>`
}
${code !== null && renderCode({ id: `${id}-answer-${status}`, title: 'Example', note: 'an answer', code, level: 5 })}`;
}

function renderNotes({ hasGateway }: { readonly hasGateway: boolean }): Html {
  return html`<section class="group" id="notes" aria-labelledby="notes-title">
<h2 id="notes-title">Paying and errors</h2>
<h3>A paid call</h3>
<p>A priced route answers 402. Its header <code>PAYMENT-REQUIRED</code> (base64 of JSON) says what to pay to whom. A \
client signs an authorization for exactly that amount,
which costs no gas, and repeats the request with <code>PAYMENT-SIGNATURE</code>. The answer has the receipt in \
<code>PAYMENT-RESPONSE</code>.
A payment is settled only after the answer exists. An error says in <code>charged</code> whether the payment was taken \
(below). A 402 took nothing for its request.</p>
<h3 id="validity">How long a payment may be valid</h3>
<p>A requirement’s <code>maxTimeoutSeconds</code> is the longest time for which an authorization may be valid. On USDC \
routes it is 604900: a week and 100 seconds. Over Lightning it is the invoice’s 300 seconds.
A payment from a deposit in Circle’s Gateway ${hasGateway ? 'needs the week.' : NO_GATEWAY}
The stock client signs for the whole of it. A client may sign for less; ten minutes are enough, and the wallet button \
of this page signs for ten minutes.
A payment whose call failed before the settlement can be presented again until it expires, for any call of the same \
price. After a settlement that moved no money it pays for the same call alone.</p>
<h3>Errors</h3>
<p>Every error is a problem document (RFC 9457), except a 402 outside <code>/v1/mpp</code>: <code>detail</code> says \
what to do, <code>code</code> is stable and meant for programs, and <code>charged</code> says whether money moved:
<code>false</code>, <code>true</code> or <code>"unknown"</code>. Present the same payment again where it is unknown; \
nothing is paid twice.</p>
<h3>Receipts</h3>
<p>Open <code>/v1/payments/</code> with a payment’s transaction, nonce or payment hash in a browser: the page says \
what became of it and how to prove it.</p>
</section>`;
}

const NO_GATEWAY =
  'would need the week. This service does not offer the Gateway now, and keeps the number, so that a client’s ' +
  'settings hold either way.';
