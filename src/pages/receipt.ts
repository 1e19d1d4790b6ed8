import { formatUnits } from '../lib/units.ts';
import type { FoundPayment } from '../payment/lookup.ts';
import { renderCode } from './code-block.ts';
import { quoteShell } from './examples.ts';
import { showLink, showTime, UNKNOWN } from './format.ts';
import { type Html, html } from './html.ts';
import { renderPage } from './shell.ts';
import { type SiteSettings, siteOf } from './site.ts';

const USDC_DECIMALS = 6;
const MSAT_DECIMALS = 3;

const STATES: Readonly<Record<FoundPayment['state'], string>> = {
  reserved: 'The call is being served. Nothing was taken yet.',
  settling: 'The answer exists, and its payment is on its way to the chain.',
  settled: 'The payment was taken, and its answer was sold.',
  unknown: 'A settlement was sent, and its end is not known yet. It is looked up until it is.',
  failed: 'Nothing was taken: the payment moved no money.',
  claimed: 'The payment arrived, and its answer has not been delivered yet. Present the same proof again.',
  delivered: 'The payment arrived, and its answer was delivered.',
};

/** Renders the receipt of the payments that an identifier names. It says what the ledger says, and never the route, the request or the payer. */
export function renderReceipt(config: SiteSettings, id: string, payments: readonly FoundPayment[]): string {
  return renderPage({
    site: siteOf(config),
    title: 'Receipt',
    path: `/v1/payments/${encodeURIComponent(id)}`,
    styles: ['reference.css'],
    scripts: ['receipt.js', 'copy.js'],
    body: html`<h1>Receipt</h1>
<p class="lead">${payments.length === 1 ? 'What became of the payment' : html`What became of the ${payments.length} payments`} of <code class="loose">${id}</code>.</p>
${payments.map((payment) => renderPayment(payment, config))}
<section class="part" aria-labelledby="bought-title"><header class="head"><h2 id="bought-title">What was bought</h2></header>
<p id="bought" data-payment="${id}">This page does not say it: anyone who reads the chain can open it. The service told the buyer alone, with the answer.</p></section>
<section class="part" aria-labelledby="proof-title"><header class="head"><h2 id="proof-title">How to prove it</h2></header>
${payments.some(({ rail }) => rail === 'usdc') && PROOF_IN_USDC}
${payments.some(({ rail }) => rail === 'lightning') && PROOF_IN_BITCOIN}
${renderCode({ id: 'receipt-curl', title: 'curl', note: 'the same for programs', code: `curl -s ${quoteShell(`${config.publicOrigin}/v1/payments/${id}`)}\n` })}</section>`,
  });
}

function renderPayment(payment: FoundPayment, { network }: SiteSettings): Html {
  const { rail, protocol, state, transaction, block, at, explorerUrl } = payment;
  return html`<section class="payment" aria-label="Payment">
<dl>
<div><dt>Amount</dt><dd><strong>${amountOf(payment)}</strong></dd></div>
<div><dt>State</dt><dd><strong>${state}</strong>. ${STATES[state]}</dd></div>
<div><dt>Time</dt><dd>${showTime(at)} UTC</dd></div>
<div><dt>Paid</dt><dd>${rail === 'usdc' ? `in USDC on ${network.name}` : 'in bitcoin over Lightning'}${protocol && ` by ${protocol}`}</dd></div>
<div><dt>${rail === 'usdc' ? 'Transaction' : 'Payment hash'}</dt><dd>${transaction ? linked(transaction, explorerUrl) : UNKNOWN}</dd></div>
${rail === 'usdc' && html`<div><dt>Block</dt><dd>${block ?? UNKNOWN}</dd></div>`}
</dl>
</section>
`;
}

function amountOf({ rail, amount }: FoundPayment): string {
  return rail === 'usdc'
    ? `${formatUnits(BigInt(amount), USDC_DECIMALS)} USDC`
    : `${formatUnits(BigInt(amount), MSAT_DECIMALS)} sats`;
}

function linked(transaction: string, explorerUrl: string | null): Html {
  return html`<code>${explorerUrl ? showLink(explorerUrl, transaction) : transaction}</code>`;
}

const PROOF_IN_USDC = html`<p>A settled payment stands on the chain. Its transaction has the event <code>AuthorizationUsed</code> of the USDC contract with the payer’s address and the payment’s nonce, and after it
<code>Transfer</code> from the payer to the seller over exactly the amount. Anyone can read both, in the explorer or from any node. Only the payer can sign with that address:
a message signed with it proves who paid. The receipt in <code>PAYMENT-RESPONSE</code>, which came with the answer, names the same transaction.</p>`;

const PROOF_IN_BITCOIN = html`<p>The payer alone got the preimage, when the invoice was paid. Its SHA-256 is the payment hash above, and the seller’s node signed that hash in the invoice with the amount and the request:
<code>printf PREIMAGE | xxd -r -p | sha256sum</code>. Show the preimage only when the answer was delivered: who has it can present the payment.</p>`;
