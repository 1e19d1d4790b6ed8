import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { describeParams, type Query } from '../catalogue/params.ts';
import { operationIdOf, pathOn, referenceLink, surfacesOf } from '../catalogue/paths.ts';
import type { AppError } from '../errors.ts';
import { acceptsHtml } from '../http/answers.ts';
import { formatUnits, MSAT_DECIMALS, USDC_DECIMALS } from '../lib/units.ts';
import { faultOf } from '../payment/checkout.ts';
import type { UnpaidPage } from '../payment/gate.ts';
import { presentsPayment } from '../payment/http-auth.ts';
import type { Demand } from '../payment/protocol.ts';
import type { FoundPayment } from '../payment/receipt.ts';
import { callExamples, exampleTarget, payWithCommand, quoteShell, termsOf } from './examples.ts';
import { type Html, html, renderCode, renderPair, renderPart, showLink, showTime, UNKNOWN } from './html.ts';
import type { PagesDeps } from './page-parts.ts';
import { renderForm, renderMoney, renderSpoken } from './reference.ts';
import type { Operation } from './reference-document.ts';
import { sendOnce } from './send.ts';
import { renderPage, type SiteSettings, siteOf } from './shell.ts';

// The small pages: the receipt of a payment, the terms, and a browser's 402 and 404.

/** The receipt as the ledger knows it. It never says the route, the request or the payer. */
export function renderReceipt(config: SiteSettings, id: string, payments: readonly FoundPayment[]): string {
  const code = `curl -s ${quoteShell(`${config.publicOrigin}/v1/payments/${id}`)}\n`;
  const many = payments.length === 1 ? 'What became of the payment' : `What became of the ${payments.length} payments`;
  return renderPage({
    site: siteOf(config),
    title: 'Receipt',
    path: `/v1/payments/${encodeURIComponent(id)}`,
    styles: ['reference.css'],
    scripts: ['receipt.js', 'copy.js'],
    body: html`<h1>Receipt</h1>
<p class="lead">${many} of <code class="loose">${id}</code>.</p>
${payments.map((payment) => renderPayment(payment, config))}
${renderPart(
  'bought-title',
  'What was bought',
  html`<p id="bought" data-payment="${id}">This page does not say it: anyone who reads the chain can open it. The \
service told the buyer alone, with the answer.</p>`,
)}
${renderPart(
  'proof-title',
  'How to prove it',
  html`${proofInUsdc(payments.filter(({ rail }) => rail === 'usdc'))}
${payments.some(({ rail }) => rail === 'lightning') && PROOF_IN_BITCOIN}
${renderCode({ id: 'receipt-curl', title: 'curl', note: 'the same for programs', code })}`,
)}`,
  });
}

function renderPayment(payment: FoundPayment, { network }: SiteSettings): Html {
  const { rail, protocol, state, transaction, block, at, explorerUrl } = payment;
  const isUsdc = rail === 'usdc';
  const paidIn = isUsdc ? `in USDC on ${network.name}` : 'in bitcoin over Lightning';
  return html`<section class="payment" aria-label="Payment">
<dl>
${renderPair('Amount', html`<strong>${amountOf(payment)}</strong>`)}
${renderPair('State', html`<strong>${state}</strong>. ${STATES[state]}`)}
${renderPair('Time', html`${showTime(at)} UTC`)}
${renderPair('Paid', [paidIn, protocol && ` by ${protocol}`])}
${renderPair(isUsdc ? 'Transaction' : 'Payment hash', transaction ? linked(transaction, explorerUrl) : UNKNOWN)}
${isUsdc && renderPair('Block', block ?? UNKNOWN)}
</dl>
</section>
`;
}

/** True of each payment in the state: the lookup says no more, such as whether it has expired or whom a proof paid. */
const STATES: Readonly<Record<FoundPayment['state'], string>> = {
  reserved: 'The call is being served. The payment is settled only after the answer exists.',
  settling: 'The answer exists, and its payment is being settled.',
  settled: 'The payment was taken, and its answer was sold.',
  unknown: 'It is not known yet whether the payment was taken. Present the same payment again: nothing is paid twice.',
  failed:
    'The service’s settlement moved no money. Until the payment expires, a third party that has seen it may still be ' +
    'able to send it. Present the same payment again before you sign another.',
  claimed:
    'The proof was taken. If its answer has not reached you, present the same proof again to the seller that you ' +
    'paid. An answer is kept for a limited time.',
  delivered: 'The payment arrived, and its answer was delivered.',
};

function amountOf({ rail, amount }: FoundPayment): string {
  return rail === 'usdc'
    ? `${formatUnits(BigInt(amount), USDC_DECIMALS)} USDC`
    : `${formatUnits(BigInt(amount), MSAT_DECIMALS)} sats`;
}

function linked(transaction: string, explorerUrl: string | null): Html {
  return html`<code>${explorerUrl ? showLink(explorerUrl, transaction) : transaction}</code>`;
}

/** Only a transfer of the token has a transaction in a block. */
function proofInUsdc(payments: readonly FoundPayment[]): Html {
  const settled = payments.filter(({ state }) => state === 'settled');
  const onChain = settled.filter(({ transaction, block }) => transaction?.startsWith('0x') && block !== null);
  return html`${onChain.length > 0 && PROOF_ON_CHAIN}
${onChain.length < settled.length && PROOF_WITHOUT_EVENT}
${settled.length < payments.length && html`<p>A payment in USDC that is not settled has nothing to prove yet.</p>`}`;
}

const PROOF_ON_CHAIN = html`<p>A payment with a transaction and a block stands on the chain. Its transaction has the \
event <code>AuthorizationUsed</code> of the USDC contract with the payer’s address and the payment’s nonce, and after it
<code>Transfer</code> from the payer: to the seller over exactly the amount, or, where the payment put a deposit into \
a payment channel, to the channel’s contract. Anyone can read both, in the explorer or from any node. Only the payer \
can sign with that address:
a message signed with it proves who paid. The receipt that came with the answer names the same transaction.</p>`;

const PROOF_WITHOUT_EVENT = html`<p>A payment without a block has no event of its own on the chain. Circle’s Gateway \
pays from a deposit: the transfer’s id stands above, or the transaction of the batch that settled it with others.
A voucher of a payment channel has no transaction: the seller claims the channel’s vouchers later, many in one \
transaction. The receipt that came with the answer, and the payer’s signature, are the proof of both.</p>`;

const PROOF_IN_BITCOIN = html`<p>The invoice’s preimage shows that it was paid, not by whom: the seller’s node and \
every node on the way of the payment know it too. Its SHA-256 is the payment hash above, and the seller’s node signed \
that hash in the invoice with the amount:
<code>printf PREIMAGE | xxd -r -p | sha256sum</code>. Show the preimage only when the answer was delivered: who has it \
can present the payment.</p>`;

/** Every sentence says what the service does, so that no operator has to write it first. */
export function renderTerms(config: SiteSettings): string {
  const { contactUrl } = config.web;
  return renderPage({
    site: siteOf(config),
    title: 'Terms',
    path: '/terms',
    description: 'What a paid call buys, what is never charged, whose data it is, and what is kept about callers.',
    body: html`<h1>Terms</h1>
<p class="lead">What a call buys, and what it does not.</p>
${renderPart('buys', 'A paid call', BUYS)}
${renderPart('data', 'The data', DATA)}
${renderPart('kept', 'What is kept', KEPT)}
${renderPart(
  'limits',
  'Limits',
  html`<p>Calls are limited by client, so that one cannot take all. An answer with status 429 says when to come back.${
    contactUrl && html` Questions go to <a href="${contactUrl}" rel="noopener">the operator</a>.`
  }</p>`,
)}`,
  });
}

const BUYS = html`<p>One payment buys exactly one answer. A payment is taken only after the answer exists. A bad \
parameter, a failing source, a limit and a fault of this service cost nothing.
The same payment for the same request brings the same answer again for 15 minutes, uncharged. An answer that never \
reached its buyer is kept for up to 7 days.</p>
<p>A transfer on a chain and a Lightning payment cannot be taken back. There are no refunds of answers that were \
delivered.</p>`;

const DATA = html`<p>Every answer names its source and says when it was read. It comes as it is, without a warranty \
that it is right, complete or fit for a purpose; it is no advice.
Where a source has a licence, the answer names it, and its terms hold for what you do with the data. Texts of \
Wikipedia are under CC BY-SA 4.0.
Routes of other sellers in the market are those sellers’ own: this service checks that they answer, and sells nothing \
of theirs.</p>`;

const KEPT = html`<p>The ledger keeps payments: amount, time, state, payer and route. An answer is kept until it can \
no longer be asked for again. A caller’s network address counts for limits, and stands beside a payment only as a hash.
There are no accounts, no cookies and no trackers. The pages load nothing from other hosts. The lookup of a payment \
never says what it bought, or for whom.</p>`;

type Shop<S> = Pick<PagesDeps<S>, 'config' | 'demoBuyer' | 'sources'> & {
  /** Whether the same routes are sold in bitcoin. */
  readonly hasLightning: boolean;
};

/** What a browser asked for, and what it must pay. */
interface Unpaid {
  readonly endpoint: Endpoint<never>;
  readonly query: Query;
  /** As received. */
  readonly target: string;
  /** What is wrong with its parameters. */
  readonly fault: string | null;
  readonly terms: Pick<PaymentRequired, 'accepts'>;
}

/**
 * Shows a browser's 402 as a page: the price, the button that pays, an example of the answer, the terms for programs.
 * Only where no payment is presented, and never for a long address: the page repeats it many times over.
 */
export function createUnpaidPage<S>(shop: Shop<S>): (endpoint: Endpoint<S>) => UnpaidPage {
  return (endpoint) => (request, demand) => {
    const [target, query] = [request.raw.url ?? '', request.query as Query];
    if (target.length > MAX_TARGET || !acceptsHtml(request) || presentsPayment(request.raw)) return null;
    const fault = faultOf(endpoint, query, shop.sources);
    const page = renderUnpaid(shop, { endpoint, query, target, fault, terms: termsIn(demand) });
    return (reply) => void sendOnce(reply, page);
  };
}

function termsIn({ fields }: Demand): Pick<PaymentRequired, 'accepts'> {
  const [, header] = fields.find(([name]) => name === 'payment-required') ?? [];
  return JSON.parse(Buffer.from(String(header), 'base64').toString('utf8'));
}

function renderUnpaid({ config, demoBuyer, hasLightning }: Omit<Shop<never>, 'sources'>, unpaid: Unpaid): string {
  const { endpoint, target, fault, terms } = unpaid;
  const { network } = config;
  const operation = operationOf(unpaid);
  const usd = endpoint.price?.usd ?? '';
  const url = `${config.publicOrigin}${exampleTarget(operation)}`;
  const codes = callExamples(operation, termsOf(config)).map(({ language, note, code }) =>
    renderCode({ id: `code-${language.toLowerCase()}`, title: language, note, code }),
  );
  return renderPage({
    site: siteOf(config),
    title: 'Payment required',
    path: operation.path,
    styles: ['reference.css'],
    scripts: ['reference.js', 'copy.js'],
    body: html`<h1>This answer costs ${usd} USDC</h1>
<p class="lead">${endpoint.summary}</p>
<p><code class="loose">GET ${target}</code> is sold by the call, in USDC on ${network.name}, without signup or key. \
Nothing was charged for this request. One payment buys exactly one answer, and a call that fails costs nothing.</p>
${
  fault !== null &&
  html`<p id="fault"><strong class="bad">Not sold like this:</strong> ${fault}. With a payment this \
request would be refused, uncharged. Mend it before you pay.</p>`
}
${renderOthers(unpaid, hasLightning)}
${renderPart('pay', 'Pay here', renderPaying(operation, terms, renderMoney(network, demoBuyer !== null)))}
${renderSpoken(network, demoBuyer !== null)}
${renderPart('example', 'What comes back', renderExample(endpoint))}
${renderPart(
  'programs',
  'Pay with a program',
  html`${renderCode({ id: 'code-percall', ...payWithCommand(url, usd) })}
${codes}`,
)}
${renderPart('terms', 'What the header asks for', renderTermsOf(terms))}`,
  });
}

/** The route as the reference has it, with the request's own values; with the example's where the request has none. */
function operationOf({ endpoint, query }: Unpaid): Operation {
  const { path, summary, price } = endpoint;
  const isBare = Object.keys(query).length === 0;
  const params = describeParams(endpoint).map(({ name, required, description, schema }) => {
    const shown = isBare ? (endpoint.example.params[name] ?? schema.default) : [query[name]].flat()[0];
    const choices = Array.isArray(schema.enum) ? schema.enum.map(String) : [];
    const [place, example, isInteger] = ['query' as const, String(shown ?? ''), schema.type === 'integer'];
    return { name, place, isRequired: required, text: description, example, choices, isInteger };
  });
  const said = { title: summary, text: '', priceUsd: price?.usd ?? null, params, body: null, answers: [] };
  return { id: operationIdOf(path, 'paid'), method: 'GET', path: pathOn(endpoint, 'paid'), tag: 'paid', ...said };
}

/** Where there is less for nothing, and more to read. */
function renderOthers({ endpoint, query }: Unpaid, hasLightning: boolean): Html {
  const { path, freeSummary } = endpoint;
  const inBitcoin = hasLightning && surfacesOf(endpoint).includes('lightning');
  return html`<ul class="routes" aria-label="Instead">
${freeSummary && html`<li><a href="${freeSummary}">Free summary</a></li>`}
${inBitcoin && html`<li><a href="${filledIn(query, referenceLink(path, 'lightning'))}">Pay in bitcoin</a></li>`}
<li><a href="${filledIn(query, referenceLink(path, 'paid'))}">Reference</a></li>
<li><a href="/terms">Terms</a></li>
</ul>`;
}

/** A link to the reference that keeps the request's values. Its own search has the name `q`. */
function filledIn({ q: _search, ...query }: Query, link: string): string {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) values.append(name, String([value].flat()[0]));
  return values.size === 0 ? link : link.replace('#', `?${values}#`);
}

function renderPaying(operation: Operation, { accepts }: Unpaid['terms'], money: Html | null): Html {
  // A wallet of the browser signs a plain transfer alone.
  const isPlain = accepts.some(({ scheme, extra }) => scheme === 'exact' && extra?.name !== 'GatewayWalletBatched');
  return html`<p>${isPlain ? WITH_WALLET : WITHOUT_WALLET}</p>
<noscript><p>Without scripts there is no such button: pay <a href="#programs">with a program</a>.</p></noscript>
${money}
<div class="pay-here">${renderForm(isPlain ? operation : { ...operation, priceUsd: null }, 'Check the price')}</div>`;
}

const WITH_WALLET =
  'Each wallet of this browser gets a button here. It signs one payment of exactly the price, valid for ten ' +
  'minutes, and only after you press it; the answer is then shown below.';

const WITHOUT_WALLET =
  'At this price the service takes no plain transfer, which is all that a wallet of a browser can sign. A program ' +
  'pays from a deposit, as the terms below say.';

function renderExample({ example: { params, result } }: Endpoint<never>): Html {
  const query = String(new URLSearchParams(params));
  const note = query === '' ? 'an answer in JSON' : `the answer to ?${query}`;
  return renderCode({ id: 'code-example', title: 'Example', note, code: JSON.stringify(result, null, 2) });
}

/** The header for those who have no tool at hand: what each way to pay asks for, and all of it as JSON. */
function renderTermsOf(terms: Unpaid['terms']): Html {
  const { accepts } = terms;
  const title = (at: number) => (accepts.length > 1 ? `Way to pay ${at + 1} of ${accepts.length}` : 'How to pay');
  const note = 'base64 of this stands in the header';
  const code = { id: 'code-required', title: 'PAYMENT-REQUIRED', note, code: JSON.stringify(terms, null, 2) };
  return html`<p>Programs read the price in the header <code>PAYMENT-REQUIRED</code> of this very answer, and repeat \
the request with <code>PAYMENT-SIGNATURE</code> (x402, version 2).</p>
${accepts.map(
  (way, at) => html`<section class="payment" aria-label="${title(at)}"><dl>${factsOf(way)}</dl></section>
`,
)}
<details><summary>All of it as JSON</summary>
${renderCode(code)}
</details>`;
}

function factsOf({ scheme, network, amount, asset, payTo, maxTimeoutSeconds, extra }: PaymentRequirements): Html[] {
  const how = [scheme, extra?.assetTransferMethod, extra?.name].filter((word) => typeof word === 'string');
  return [
    renderPair('Price', `${formatUnits(BigInt(amount), USDC_DECIMALS)} USDC (${amount} base units)`),
    renderPair('Pay to', payTo),
    renderPair('Network', network),
    renderPair('Asset', asset),
    renderPair('Valid for', `at most ${maxTimeoutSeconds} s`),
    renderPair('Scheme', how.join(', ')),
  ];
}

const [NOT_FOUND, MAX_TARGET] = [404, 2048];

/**
 * Answers a browser's 404 with a page that says that it cost nothing: only where no payment is presented and the error
 * says `charged: false`. Otherwise returns false, and the caller answers with a problem document.
 */
export function createProblemPage(config: SiteSettings) {
  const site = siteOf(config);
  return (request: FastifyRequest, reply: FastifyReply, error: AppError): boolean => {
    if (error.status !== NOT_FOUND || error.charged !== false) return false;
    if (!acceptsHtml(request) || presentsPayment(request.raw)) return false;
    const page = renderPage({
      site,
      title: 'Not found',
      path: '/404',
      body: html`<h1>Not found</h1>
<p class="lead">${error.message}</p>
<p>Nothing was charged for this request. <a href="/">Overview</a>, <a href="/market">Market</a>, \
<a href="/docs">Reference</a>, <a href="/status">Status</a>.</p>
<p><small>Request ${request.id}</small></p>`,
    });
    sendOnce(reply.code(NOT_FOUND), page);
    return true;
  };
}
