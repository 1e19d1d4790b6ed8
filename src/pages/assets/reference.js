import { findPayers } from './payers.js';
import { callOf } from './reference-call.js';
import { showAnswer, showText } from './reference-outcome.js';
import { payFor } from './reference-pay.js';

// Makes the reference's forms call the service, its search filter at once, and its links open what they lead to.

const find = document.querySelector('#find');
const found = document.querySelector('#found');
/** @type {HTMLDetailsElement[]} */
const operations = [...document.querySelectorAll('details.op')].filter((one) => one instanceof HTMLDetailsElement);

/** Opens the operation that the address names, with the values of its query. */
function openLinked() {
  const linked = operations.find(({ id }) => id === decodeURIComponent(location.hash.slice(1)));
  if (!linked) return;
  // A search may have hidden it.
  linked.hidden = false;
  const group = linked.closest('.group');
  if (group instanceof HTMLElement) group.hidden = false;
  linked.open = true;
  const given = new URLSearchParams(location.search);
  for (const field of linked.querySelectorAll('input, select')) {
    const value = 'name' in field ? given.get(String(field.name)) : null;
    if (value === null || !(field instanceof HTMLInputElement || field instanceof HTMLSelectElement)) continue;
    field.value = value;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }
  linked.scrollIntoView();
}

/** Hides operations that lack a word, and empty groups. The server's search compares the same text. */
function filter() {
  if (!(find instanceof HTMLInputElement) || !found) return;
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const one of operations) one.hidden = !words.every((word) => one.dataset.find?.includes(word));
  for (const group of document.querySelectorAll('.group[id^="group-"]')) {
    if (group instanceof HTMLElement) group.hidden = group.querySelector('details.op:not([hidden])') === null;
  }
  const left = operations.filter((one) => !one.hidden).length;
  found.textContent = words.length === 0 ? `${left} routes.` : `${left} of ${operations.length} routes.`;
}

/** Runs one call at a time for each form. @param {HTMLFormElement} form @param {() => Promise<void>} run */
async function busy(form, run) {
  const buttons = [...form.querySelectorAll('button')];
  for (const button of buttons) button.disabled = true;
  showText(form, 'Waiting for the answer …');
  await run().catch((error) => showText(form, `${error.message ?? error}`, 'bad'));
  for (const button of buttons) button.disabled = false;
}

/** @param {HTMLFormElement} form */
async function tryOut(form) {
  const isLightning = form.dataset.price !== undefined && form.dataset.path?.startsWith('/v1/lightning/');
  // Its QR codes are needed here alone.
  const lightning = isLightning ? await import('./reference-lightning.js') : null;
  if (lightning?.offerProof(form)) return;
  const { url, init } = callOf(form);
  if (lightning?.showOpen(form, url)) return;
  const began = performance.now();
  const answer = await fetch(url, init);
  const tookMs = performance.now() - began;
  const offer = lightning?.invoiceIn(answer);
  const before = lightning && offer ? [lightning.invoicePart(form, lightning.saleFor(url, offer))] : [];
  await showAnswer(form, answer, tookMs, { before });
}

/** The examples below a form follow its fields. @param {HTMLFormElement} form */
function followFields(form) {
  let shown = callOf(form).target;
  const codes = form.closest('.op-body, main')?.querySelectorAll('.code code') ?? [];
  form.addEventListener('input', () => {
    const { target } = callOf(form);
    if (target === shown) return;
    for (const code of codes) replaceText(code, shown, target);
    shown = target;
  });
}

/** @param {Element} element @param {string} before @param {string} after */
function replaceText(element, before, after) {
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    // With the quote that ends it: another address may begin with it.
    node.nodeValue = (node.nodeValue ?? '').replaceAll(`${before}'`, () => `${after}'`);
  }
}

/** @type {HTMLFormElement[]} */
const forms = [...document.querySelectorAll('form.try')].filter((form) => form instanceof HTMLFormElement);
for (const form of forms) {
  form.hidden = false;
  form.noValidate = true;
  for (const field of form.querySelectorAll('[data-enable]')) field.removeAttribute('disabled');
  followFields(form);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void busy(form, () => tryOut(form));
  });
}

findPayers((payer) => {
  for (const form of forms) {
    // Only routes that are sold for USDC over x402.
    if (form.dataset.price === undefined || !form.dataset.path?.startsWith('/v1/paid/')) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.dataset.payer = payer.id;
    button.textContent = `Pay ${form.dataset.price} USDC with ${payer.name}`;
    button.addEventListener('click', () => void busy(form, () => payFor(form, payer)));
    form.querySelector('.go')?.append(button);
  }
});

find?.addEventListener('input', filter);
addEventListener('hashchange', openLinked);
openLinked();
