import { rememberPurchase } from './purchases.js';
import { callOf } from './reference-call.js';
import { element, showAnswer, showText } from './reference-outcome.js';

/** Buys a form's call: asks for the terms, has them signed, presents the payment, and shows the answer with its receipt. */

/** @typedef {import('./payers.js').Requirement} Requirement */
/** @typedef {import('./payers.js').Payer} Payer */

const BASE_UNITS = 1_000_000;

/** @param {HTMLFormElement} form @param {Payer} payer */
export async function payFor(form, payer) {
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
  await present(form, url, { x402Version: 2, resource, accepted, payload });
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

/** The transaction that an answer's receipt names. @param {Response} answer @returns {string[]} */
function transactionIn(answer) {
  const { transaction } = JSON.parse(atob(answer.headers.get('payment-response') ?? '') || '{}');
  return typeof transaction === 'string' && transaction !== '' ? [transaction] : [];
}

/**
 * Presents a signed payment. After an answer that leaves open whether it was taken, the same payment can be presented again: nothing is paid twice.
 * @param {HTMLFormElement} form
 * @param {string} url
 * @param {{ x402Version: number, resource: unknown, accepted: Requirement, payload: import('./payers.js').Signed }} payment
 */
async function present(form, url, payment) {
  showText(form, 'Paid calls wait for a block of the chain …');
  const again = element('button', { type: 'button' }, 'Present the same payment again');
  again.addEventListener(
    'click',
    () => void present(form, url, payment).catch((error) => showText(form, `${error}`, 'bad')),
  );
  const { nonce } = payment.payload.authorization;
  const began = performance.now();
  const headers = { 'payment-signature': btoa(JSON.stringify(payment)) };
  const answer = await fetch(url, { headers }).catch(() => null);
  if (answer === null) {
    showText(
      form,
      'The answer was lost. The payment may have been taken; presenting it again costs nothing more.',
      'bad',
    );
    form.querySelector('.outcome')?.append(again);
    return;
  }
  if (answer.ok)
    rememberPurchase([nonce, ...transactionIn(answer)], `GET ${new URL(url).pathname}${new URL(url).search}`);
  const isOpen = !answer.ok && /"charged":\s*"unknown"/.test(await answer.clone().text());
  const receipt = element('p', {}, element('a', { href: `/v1/payments/${nonce}` }, 'Receipt of this payment'));
  await showAnswer(
    form,
    answer,
    performance.now() - began,
    ...(answer.ok || isOpen ? [receipt] : []),
    ...(isOpen ? [again] : []),
  );
}
