import encodeQR from 'qr';
import { expiryOf, forgetSale, openSale, rememberSale, replaceSale, saleOf } from './lightning-sales.js';
import { rememberPurchase } from './purchases.js';
import { element, showAnswer, showText } from './reference-outcome.js';

// Buys a form's call over Lightning: shows the invoice of its 402, has it paid, presents the proof, and shows the
// answer. Loaded when the first invoice comes. The preimage goes to this service alone.

/** @typedef {{ network: string, amount: string, maxTimeoutSeconds: number, extra: { invoice: string } }} Offer */
// The call that an invoice pays, byte for byte, and when the invoice expires, in Unix milliseconds.
/** @typedef {{ url: string, offer: Offer, expiresAt: number, isReplaced?: boolean }} Sale */
/** @typedef {{ enable(): Promise<void>, sendPayment(invoice: string): Promise<{ preimage: string }> }} WebLn */

const MSAT_PER_SAT = 1000n;
/** Light modules around a QR code, which readers need. */
const QUIET = 4;
const SVG = 'http://www.w3.org/2000/svg';

/** What was paid and brought no answer yet. @type {WeakMap<HTMLFormElement, { sale: Sale, preimage: string }>} */
const unanswered = new WeakMap();

/** The invoice of a 402; null where it offers none. @param {Response} answer @returns {Offer | null} */
export function invoiceIn({ status, headers }) {
  const header = headers.get('payment-required');
  if (status !== 402 || header === null) return null;
  const { accepts } = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(header), (one) => one.charCodeAt(0))));
  return (
    accepts.find((/** @type {Offer} */ { network, extra }) => network.startsWith('lnbtc:') && extra?.invoice) ?? null
  );
}

/** Offers a paid proof again, so that no second invoice is paid; false without one. @param {HTMLFormElement} form */
export function offerProof(form) {
  const paid = unanswered.get(form);
  if (paid === undefined) return false;
  const said = 'A proof of payment for this call has brought no answer yet. Present it again; nothing is paid twice.';
  showText(form, said, 'bad');
  form.querySelector('.outcome')?.append(proofPart(form, paid.sale, paid.preimage));
  const fresh = element('button', { type: 'button', className: 'quiet' }, 'Ask for another invoice');
  fresh.addEventListener('click', () => {
    unanswered.delete(form);
    replaceSale(paid.sale);
    form.requestSubmit();
  });
  form.querySelector('.outcome')?.append(fresh);
  return true;
}

// Shows the open invoice of an earlier call: it may be paid already. False where there is none.
/** @param {HTMLFormElement} form @param {string} url */
export function showOpen(form, url) {
  const sale = openSale(url);
  if (sale === undefined) return false;
  showText(form, 'The invoice of this call can still be paid. If it is, present the preimage that your wallet shows.');
  form.querySelector('.outcome')?.append(invoicePart(form, sale));
  return true;
}

/** @param {string} url @param {Offer} offer @returns {Sale} */
export function saleFor(url, offer) {
  const sale = { url, offer, expiresAt: expiryOf(offer) };
  rememberSale(sale);
  return sale;
}

/** An invoice's QR code, a copy of it, links to wallets, and the field for its proof. */
export function invoicePart(/** @type {HTMLFormElement} */ form, /** @type {Sale} */ sale) {
  const { invoice } = sale.offer.extra;
  const price = `${BigInt(sale.offer.amount) / MSAT_PER_SAT} sat`;
  const text = element('p', {}, element('code', { className: 'loose' }, invoice));
  const folded = element(
    'details',
    { open: !navigator.clipboard },
    element('summary', {}, 'The invoice as text'),
    text,
  );
  const actions = element('p', { className: 'go' });
  const webln = /** @type {WebLn | undefined} */ (Reflect.get(globalThis, 'webln'));
  const pay = `Pay ${price} with this browser’s wallet`;
  if (webln) actions.append(button(pay, () => payWith(form, sale, webln), form));
  if (navigator.clipboard) {
    const copy = element('button', { type: 'button', className: 'quiet' }, 'Copy the invoice');
    copy.addEventListener('click', async () => {
      copy.textContent = await navigator.clipboard.writeText(invoice).then(
        () => 'Copied',
        () => 'Not copied',
      );
    });
    actions.append(copy);
  }
  actions.append(element('a', { href: `lightning:${invoice}` }, 'Open in a wallet'));
  return element(
    'section',
    { className: 'payment invoice', ariaLabel: 'Invoice' },
    element('h5', {}, `Pay ${price} over Lightning`),
    qrOf(`lightning:${invoice}`.toUpperCase(), `QR code of the invoice over ${price}`),
    actions,
    folded,
    proofPart(form, sale, ''),
  );
}

// The field of the preimage, which a wallet shows after it has paid. It is no field of the call, so it has no name.
/** @param {HTMLFormElement} form @param {Sale} sale @param {string} preimage @returns {HTMLElement} */
function proofPart(form, sale, preimage) {
  const id = `${form.closest('.op')?.id}-preimage`;
  const field = document.createElement('input');
  Object.assign(field, { id, value: preimage, autocomplete: 'off', spellcheck: false });
  /** @param {string} why */
  const refuse = (why) => {
    field.setCustomValidity(why);
    field.reportValidity();
  };
  const send = async () => {
    const proof = field.value.trim().toLowerCase();
    if (!/^[0-9a-f]{64}$/.test(proof))
      return refuse('The preimage is 64 hex digits. A wallet shows it beside the payment.');
    const paid = await saleOf(proof, sale);
    if (paid) return present(form, paid, proof);
    refuse('This preimage belongs to no invoice that was shown here. Look at it again in your wallet.');
  };
  field.addEventListener('input', (event) => {
    event.stopPropagation();
    field.setCustomValidity('');
  });
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    void send();
  });
  const label = element('label', { htmlFor: id }, 'Paid elsewhere? The preimage that your wallet shows:');
  return element('p', { className: 'proof' }, label, field, button('Present the proof', send, form));
}

/** @param {HTMLFormElement} form @param {Sale} sale @param {WebLn} webln */
async function payWith(form, sale, webln) {
  await webln.enable();
  const { preimage } = await webln.sendPayment(sale.offer.extra.invoice).catch((error) => {
    const why = error?.message ?? error;
    throw new Error(`The wallet did not say that it has paid: ${why}. If it has, present the preimage that it shows.`);
  });
  await present(form, sale, preimage);
}

// Presents a proof, and shows the answer. A proof stays good: it can be presented again until an answer has come.
/** @param {HTMLFormElement} form @param {Sale} sale @param {string} preimage @returns {Promise<void>} */
async function present(form, sale, preimage) {
  unanswered.set(form, { sale, preimage });
  showText(form, 'Presenting the proof …');
  const began = performance.now();
  const content = { x402Version: 2, accepted: sale.offer, payload: { preimage } };
  const headers = { accept: 'application/json', 'payment-signature': btoa(JSON.stringify(content)) };
  const answer = await fetch(sale.url, { headers }).catch(() => null);
  if (answer === null) return void offerProof(form);
  const tookMs = performance.now() - began;
  if (!answer.ok) {
    const said =
      'The answer has not come yet. If the invoice is paid, present the same proof again; nothing is paid twice.';
    const before = [element('p', {}, element('strong', {}, said)), proofPart(form, sale, preimage)];
    return showAnswer(form, answer, tookMs, { before });
  }
  unanswered.delete(form);
  forgetSale(sale);
  const { transaction } = JSON.parse(atob(answer.headers.get('payment-response') ?? '') || '{}');
  const { pathname, search } = new URL(sale.url);
  if (transaction) rememberPurchase([transaction], `GET ${pathname}${search}`);
  const link = element('a', { href: `/v1/payments/${transaction}` }, 'Receipt of this payment');
  await showAnswer(form, answer, tookMs, { links: transaction ? [element('p', {}, link)] : [] });
}

// A button whose failure is said beside it, so that the invoice stays.
/** @param {string} text @param {() => Promise<void>} work @param {HTMLFormElement} form */
function button(text, work, form) {
  const made = document.createElement('button');
  Object.assign(made, { type: 'button', textContent: text });
  made.addEventListener('click', async () => {
    made.disabled = true;
    await work().catch((error) => {
      form.querySelector('.outcome .failed')?.remove();
      made.after(element('span', { className: 'bad failed', role: 'alert' }, `${error?.message ?? error}`));
    });
    made.disabled = false;
  });
  return made;
}

/** A QR code: one path of dark squares on light ground. @param {string} text @param {string} label */
function qrOf(text, label) {
  const rows = encodeQR(text, 'raw', { ecc: 'low', border: QUIET });
  const dark = rows.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  const svg = document.createElementNS(SVG, 'svg');
  const path = document.createElementNS(SVG, 'path');
  for (const [name, value] of Object.entries({
    viewBox: `0 0 ${rows.length} ${rows.length}`,
    class: 'qr',
    role: 'img',
    'aria-label': label,
    'shape-rendering': 'crispEdges',
  }))
    svg.setAttribute(name, value);
  path.setAttribute('d', dark.join(''));
  svg.append(path);
  return svg;
}
