import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AppError } from '../errors.ts';
import { acceptsHtml } from '../http/answers.ts';
import { formatUnits, MSAT_DECIMALS, USDC_DECIMALS } from '../lib/units.ts';
import { presentsPayment } from '../payment/http-auth.ts';
import type { FoundPayment } from '../payment/receipt.ts';
import { quoteShell } from './examples.ts';
import { type Html, html, renderCode, renderPair, renderPart, showLink, showTime, UNKNOWN } from './html.ts';
import { sendOnce } from './send.ts';
import { renderPage, type SiteSettings, siteOf } from './shell.ts';

// The small pages: the receipt of a payment, the terms, and a browser's 404.

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

const NOT_FOUND = 404;

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
