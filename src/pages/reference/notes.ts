import { type Html, html } from '../html.ts';

/** Renders what holds for every route: how a payment is made and for how long it may be valid, what is never charged, and the form of errors. */
export function renderNotes({ hasGateway }: { readonly hasGateway: boolean }): Html {
  return html`<section class="group" id="notes" aria-labelledby="notes-title">
<h2 id="notes-title">Paying and errors</h2>
<h3>A paid call</h3>
<p>A priced route answers 402. Its header <code>PAYMENT-REQUIRED</code> (base64 of JSON) says what to pay to whom. A client signs an authorization for exactly that amount,
which costs no gas, and repeats the request with <code>PAYMENT-SIGNATURE</code>. The answer has the receipt in <code>PAYMENT-RESPONSE</code>.
A payment is settled only after the answer exists. An error says in <code>charged</code> whether the payment was taken (below). A 402 took nothing for its request.</p>
<h3 id="validity">How long a payment may be valid</h3>
<p>A requirement’s <code>maxTimeoutSeconds</code> is the longest time for which an authorization may be valid. On USDC routes it is 604900: a week and 100 seconds. Over Lightning it is the invoice’s 300 seconds.
${hasGateway ? 'A payment from a deposit in Circle’s Gateway needs the week.' : 'A payment from a deposit in Circle’s Gateway would need the week. This service does not offer the Gateway now, and keeps the number, so that a client’s settings hold either way.'}
The stock client signs for the whole of it. A client may sign for less; ten minutes are enough, and the wallet button of this page signs for ten minutes.
A payment whose call failed before the settlement can be presented again until it expires, for any call of the same price. After a settlement that moved no money it pays for the same call alone.</p>
<h3>Errors</h3>
<p>Every error is a problem document (RFC 9457), except a 402 outside <code>/v1/mpp</code>: <code>detail</code> says what to do, <code>code</code> is stable and meant for programs, and <code>charged</code> says whether money moved:
<code>false</code>, <code>true</code> or <code>"unknown"</code>. Present the same payment again where it is unknown; nothing is paid twice.</p>
<h3>Receipts</h3>
<p>Open <code>/v1/payments/</code> with a payment’s transaction, nonce or payment hash in a browser: the page says what became of it and how to prove it.</p>
</section>`;
}
