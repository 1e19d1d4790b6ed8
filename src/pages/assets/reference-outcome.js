import { describePayment, summarisePayment } from './reference-payment.js';

/** Shows the answer to a form's call below the form. Every part of an answer is shown as text. */

/** The most characters of an answer that are shown. */
const SHOWN = 100_000;
const spoken = document.querySelector('#reference-answer');

/** @param {HTMLFormElement} form */
function placeOf(form) {
  const place = form.querySelector('.outcome');
  if (!(place instanceof HTMLElement)) throw new Error('the form has no place for an answer');
  place.hidden = false;
  return place;
}

/** Shows one sentence in place of an answer. @param {HTMLFormElement} form @param {string} text @param {'bad' | ''} [look] */
export function showText(form, text, look = '') {
  placeOf(form).replaceChildren(element('p', { className: look }, text));
  if (spoken && look === 'bad') spoken.textContent = text;
}

// Shows a status, the caller's `before`, the answer, and its decoded payment header with the caller's `links`. Scrolls
// to what comes first, and announces the answer to screen readers.
/** @typedef {{ before?: Element[], links?: Node[] }} Around */
/** @param {HTMLFormElement} form @param {Response} answer @param {number} tookMs @param {Around} [around] */
export async function showAnswer(form, answer, tookMs, { before = [], links = [] } = {}) {
  const text = await answer.text();
  const described = describePayment(Object.fromEntries(answer.headers));
  const status = element('strong', { className: answer.status < 400 ? 'good' : '' }, `${answer.status}`);
  const line = element('p', { className: 'status' }, status, ` ${answer.statusText} after ${Math.round(tookMs)} ms`);
  const body = element('pre', { tabIndex: 0, ariaLabel: 'Answer' }, pretty(text).slice(0, SHOWN));
  const payment = described ? [showPayment(described, links)] : links;
  placeOf(form).replaceChildren(line, ...before, body, ...payment);
  (before[0] ?? body).scrollIntoView({ block: 'nearest' });
  if (spoken) {
    spoken.textContent =
      `${new URL(answer.url).pathname} answered ${answer.status}. ${summarisePayment(described)}`.trim();
  }
}

/** @typedef {import('./reference-payment.js').Description} Description */
/** A receipt whose facts are shown is not shown as JSON too. @param {Description} description @param {Node[]} links */
function showPayment({ header, groups, json }, links) {
  const title = `${header}, decoded`;
  const facts = groups.flatMap((group) => [
    element('h5', {}, group.title),
    element(
      'dl',
      {},
      ...group.facts.map(([label, text]) => element('div', {}, element('dt', {}, label), element('dd', {}, text))),
    ),
  ]);
  const isTold = header === 'PAYMENT-RESPONSE' && groups.length > 0;
  const content = isTold ? [] : [contentOf(header, json)];
  const heading = element('h5', {}, title);
  return element('section', { className: 'payment', ariaLabel: title }, heading, ...facts, ...content, ...links);
}

/** @param {string} header @param {string | null} json */
function contentOf(header, json) {
  return json === null
    ? element('p', {}, 'It cannot be: it is not JSON in base64.')
    : element('pre', { tabIndex: 0, ariaLabel: `${header} as JSON` }, json);
}

/** JSON in lines; anything else as it is. @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** @param {string} name @param {Record<string, unknown>} properties @param {(Node | string)[]} content */
export function element(name, properties, ...content) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...content);
  return made;
}
