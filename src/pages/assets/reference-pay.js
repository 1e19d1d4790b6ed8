import { rememberPurchase } from './purchases.js';
import { callOf } from './reference-call.js';
import { element, showAnswer, showText } from './reference-outcome.js';

// Buys a form's call: asks for the terms, has them signed, presents the payment, and shows the answer with its receipt.

/** @typedef {import('./payers.js').Requirement} Requirement */
/** @typedef {import('./payers.js').Payer} Payer */
// A signed payment and the call that it pays.
/** @typedef {import('./payers.js').Signed} Signed */
/** @typedef {{ x402Version: number, resource: unknown, accepted: Requirement, payload: Signed }} Content */
/** @typedef {{ url: string, content: Content }} Payment */

const BASE_UNITS = 1_000_000;

/** The last payment that was signed for a form and brought no answer. @type {WeakMap<HTMLFormElement, Payment>} */
const open = new WeakMap();

// Buys a form's call. While an earlier payment of it can still be taken, it asks whether to present that one again.
/** @param {HTMLFormElement} form @param {Payer} payer */
export async function payFor(form, payer) {
  const earlier = open.get(form);
  if (earlier !== undefined && isValid(earlier)) return offerChoice(form, payer, earlier);
  await signAndPresent(form, payer);
}

/** @param {HTMLFormElement} form @param {Payer} payer */
async function signAndPresent(form, payer) {
  const { url, init } = callOf(form);
  const began = performance.now();
  const unpaid = await fetch(url, init);
  const header = unpaid.headers.get('payment-required');
  if (unpaid.status !== 402 || header === null) return showAnswer(form, unpaid, performance.now() - began);
  const { resource, accepts } = JSON.parse(atob(header));
  const accepted = plainWay(accepts);
  if (accepted === undefined) throw new Error('This route cannot be paid by a plain transfer now.');
  const limit = Math.round(Number(form.dataset.price) * BASE_UNITS);
  if (BigInt(accepted.amount) > BigInt(limit)) {
    throw new Error(
      `It asks for ${accepted.amount} base units, which is more than the listed ${limit}. Nothing was signed.`,
    );
  }
  showText(form, `Waiting for ${payer.name} to sign …`);
  const payload = await payer.sign(accepted);
  const payment = { url, content: { x402Version: 2, resource, accepted, payload } };
  open.set(form, payment);
  await present(form, payment);
}

/** Whether the seller or a third party can still have it settled. @param {Payment} payment */
function isValid({ content }) {
  return Date.now() < Number(content.payload.authorization.validBefore) * 1000;
}

/** Leaves it to the reader. @param {HTMLFormElement} form @param {Payer} payer @param {Payment} earlier */
function offerChoice(form, payer, earlier) {
  const until = new Date(Number(earlier.content.payload.authorization.validBefore) * 1000);
  showText(
    form,
    `You have signed a payment for GET ${targetOf(earlier.url)}. It brought no answer, and it is valid until ${until.toLocaleTimeString()}. If you sign another payment, both may be taken.`,
    'bad',
  );
  const sign = () => signAndPresent(form, payer);
  form
    .querySelector('.outcome')
    ?.append(receiptOf(earlier), againButton(form, earlier), ' ', actionButton(form, 'Sign another payment', sign));
}

/** @param {HTMLFormElement} form @param {Payment} payment */
function againButton(form, payment) {
  return actionButton(form, 'Present the same payment again', () => present(form, payment));
}

// Shows in place of an answer why its work failed.
/** @param {HTMLFormElement} form @param {string} text @param {() => Promise<void>} work */
function actionButton(form, text, work) {
  const button = element('button', { type: 'button' }, text);
  button.addEventListener(
    'click',
    () => void work().catch((error) => showText(form, `${error.message ?? error}`, 'bad')),
  );
  return button;
}

/** @param {Payment} payment */
function receiptOf({ content }) {
  const { nonce } = content.payload.authorization;
  return element('p', {}, element('a', { href: `/v1/payments/${nonce}` }, 'Receipt of this payment'));
}

/** @param {string} url */
function targetOf(url) {
  const { pathname, search } = new URL(url);
  return `${pathname}${search}`;
}

/** The entry that a wallet can sign: a transfer by authorization of the token itself. @param {Requirement[]} accepts */
function plainWay(accepts) {
  return accepts.find(
    ({ scheme, network, extra }) =>
      scheme === 'exact' &&
      network.startsWith('eip155:') &&
      extra?.name !== 'GatewayWalletBatched' &&
      (extra?.assetTransferMethod ?? 'eip3009') === 'eip3009',
  );
}

/** @param {Response} answer @returns {string[]} */
function transactionIn(answer) {
  const { transaction } = JSON.parse(atob(answer.headers.get('payment-response') ?? '') || '{}');
  return typeof transaction === 'string' && transaction !== '' ? [transaction] : [];
}

// Presents a signed payment, and shows the answer, or whether the payment was taken. Where it may have been taken, or
// the error asks for it, the reader can present it again: nothing is paid twice.
/** @param {HTMLFormElement} form @param {Payment} payment */
async function present(form, payment) {
  const { url, content } = payment;
  showText(form, 'Paid calls wait for a block of the chain …');
  const began = performance.now();
  const headers = { 'payment-signature': btoa(JSON.stringify(content)) };
  const answer = await fetch(url, { headers }).catch(() => null);
  if (answer === null) {
    showText(
      form,
      'The answer was lost. The payment may have been taken; presenting it again costs nothing more.',
      'bad',
    );
    form.querySelector('.outcome')?.append(receiptOf(payment), againButton(form, payment));
    return;
  }
  const { charge, isOpen } = await chargeOf(answer.clone());
  if (!isOpen && open.get(form) === payment) open.delete(form);
  if (answer.ok) {
    rememberPurchase([content.payload.authorization.nonce, ...transactionIn(answer)], `GET ${targetOf(url)}`);
    return showAnswer(form, answer, performance.now() - began, { links: [receiptOf(payment)] });
  }
  const said = CHARGES[charge];
  const before = [
    ...(said ? [element('p', {}, element('strong', {}, said))] : []),
    ...(charge === 'no' ? [] : [receiptOf(payment)]),
    ...(isOpen ? [againButton(form, payment)] : []),
  ];
  await showAnswer(form, answer, performance.now() - began, { before });
}

/** @type {Record<'yes' | 'no' | 'open', string>} */
const CHARGES = {
  yes: 'Charged.',
  no: 'Not charged.',
  open: 'It is not known whether this was charged.',
};
/** Refuse a payment only for now: a limit, or a service that is not ready. */
const FOR_NOW = [429, 503];

// Whether a payment was taken, and whether to present the same one again. Every problem says `charged`; without that it
// is not known. A 402 took nothing for its request, but see `isInDoubt`.
/** @param {Response} answer @returns {Promise<{ charge: 'yes' | 'no' | 'open', isOpen: boolean }>} */
async function chargeOf(answer) {
  if (answer.ok) return { charge: 'yes', isOpen: false };
  if (answer.status === 402)
    return isInDoubt(answer) ? { charge: 'open', isOpen: true } : { charge: 'no', isOpen: false };
  const { charged } = await answer.json().catch(() => ({}));
  if (charged === true) return { charge: 'yes', isOpen: false };
  if (charged === false) return { charge: 'no', isOpen: FOR_NOW.includes(answer.status) };
  return { charge: 'open', isOpen: true };
}

// Whether a payment may be taken in spite of a 402. A receipt says that a settlement was tried, so a third party may
// have the authorization. A used payment may have been taken for an earlier request.
/** @param {Response} answer */
function isInDoubt({ headers }) {
  if (headers.has('payment-response')) return true;
  const reason = reasonIn(headers.get('payment-required'));
  return reason === null || reason === 'payment_already_used';
}

/** The reason that a 402 names; null where it cannot be read. @param {string | null} required */
function reasonIn(required) {
  try {
    const { error } = JSON.parse(atob(required ?? ''));
    return typeof error === 'string' ? error : null;
  } catch {
    return null;
  }
}
