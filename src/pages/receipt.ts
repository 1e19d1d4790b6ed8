import { formatUnits, USDC_DECIMALS } from '../lib/units.ts';
import type { FoundPayment } from '../payment/receipt.ts';
import { renderCode } from './code-block.ts';
import { quoteShell } from './examples.ts';
import { showLink, showTime, UNKNOWN } from './format.ts';
import { type Html, html } from './html.ts';
import { renderPage } from './shell.ts';
import { type SiteSettings, siteOf } from './site.ts';

const MSAT_DECIMALS = 3;

/** True of every payment in the state: the lookup does not say more, such as whether an authorization has expired or which seller a proof paid. */
const STATES: Readonly<Record<FoundPayment['state'], string>> = {
  reserved: 'The call is being served. The payment is settled only after the answer exists.',
  settling: 'The answer exists, and its payment is being settled.',
  settled: 'The payment was taken, and its answer was sold.',
  unknown: 'It is not known yet whether the payment was taken. Present the same payment again: nothing is paid twice.',
  failed:
    'The service’s settlement moved no money. Until the payment expires, a third party that has seen it may still be able to send it. Present the same payment again before you sign another.',
  claimed:
    'The proof was taken. If its answer has not reached you, present the same proof again to the seller that you paid. An answer is kept for a limited time.',
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
${proofInUsdc(payments.filter(({ rail }) => rail === 'usdc'))}
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

/** The proofs that the payments have. A transfer of the token has a transaction in a block of the ledger; a Gateway transfer and a voucher have none. */
function proofInUsdc(payments: readonly FoundPayment[]): Html {
  const settled = payments.filter(({ state }) => state === 'settled');
  const onChain = settled.filter(({ transaction, block }) => transaction?.startsWith('0x') && block !== null);
  return html`${onChain.length > 0 && PROOF_ON_CHAIN}
${onChain.length < settled.length && PROOF_WITHOUT_EVENT}
${settled.length < payments.length && html`<p>A payment in USDC that is not settled has nothing to prove yet.</p>`}`;
}

const PROOF_ON_CHAIN = html`<p>A payment with a transaction and a block stands on the chain. Its transaction has the event <code>AuthorizationUsed</code> of the USDC contract with the payer’s address and the payment’s nonce, and after it
<code>Transfer</code> from the payer: to the seller over exactly the amount, or, where the payment put a deposit into a payment channel, to the channel’s contract. Anyone can read both, in the explorer or from any node. Only the payer can sign with that address:
a message signed with it proves who paid. The receipt that came with the answer names the same transaction.</p>`;

const PROOF_WITHOUT_EVENT = html`<p>A payment without a block has no event of its own on the chain. Circle’s Gateway pays from a deposit: the transfer’s id stands above, or the transaction of the batch that settled it with others.
A voucher of a payment channel has no transaction: the seller claims the channel’s vouchers later, many in one transaction. The receipt that came with the answer, and the payer’s signature, are the proof of both.</p>`;

const PROOF_IN_BITCOIN = html`<p>The invoice’s preimage shows that it was paid, not by whom: the seller’s node and every node on the way of the payment know it too. Its SHA-256 is the payment hash above, and the seller’s node signed that hash in the invoice with the amount:
<code>printf PREIMAGE | xxd -r -p | sha256sum</code>. Show the preimage only when the answer was delivered: who has it can present the payment.</p>`;
