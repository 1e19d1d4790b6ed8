import { describePayment, summarisePayment } from './reference-payment.js';

/** Shows the answer to a form's call below the form. Every part of an answer is shown as text. */

/** Characters of an answer that are shown. */
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

/** Shows an answer with its status, its duration and its decoded payment header. Announces it to screen readers in one sentence. */
export async function showAnswer(
  /** @type {HTMLFormElement} */ form,
  /** @type {Response} */ answer,
  /** @type {number} */ tookMs,
  /** @type {Node[]} */ ...more
) {
  const text = await answer.text();
  const described = describePayment(Object.fromEntries(answer.headers));
  const status = element('strong', { className: answer.status < 400 ? 'good' : '' }, `${answer.status}`);
  const line = element('p', { className: 'status' }, status, ` ${answer.statusText} after ${Math.round(tookMs)} ms`);
  const body = element('pre', { tabIndex: 0, ariaLabel: 'Answer' }, pretty(text).slice(0, SHOWN));
  const parts = [line, ...(described ? [showPayment(described)] : []), ...more, body];
  placeOf(form).replaceChildren(...parts);
  if (spoken) {
    spoken.textContent =
      `${new URL(answer.url).pathname} answered ${answer.status}. ${summarisePayment(described)}`.trim();
  }
}

/** The decoded payment header of an answer. @param {import('./reference-payment.js').Description} description */
function showPayment({ header, groups, json }) {
  const title = `${header}, decoded`;
  const facts = groups.flatMap((group) => [
    element('h5', {}, group.title),
    element(
      'dl',
      {},
      ...group.facts.map(([label, text]) => element('div', {}, element('dt', {}, label), element('dd', {}, text))),
    ),
  ]);
  const content =
    json === null
      ? element('p', {}, 'It cannot be: it is not JSON in base64.')
      : element('pre', { tabIndex: 0, ariaLabel: `${header} as JSON` }, json);
  return element('section', { className: 'payment', ariaLabel: title }, element('h5', {}, title), ...facts, content);
}

/** JSON in lines; anything else as it is. @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/**
 * An element with properties and content. Content that is a string becomes text.
 * @param {string} name
 * @param {Record<string, unknown>} properties
 * @param {(Node | string)[]} content
 */
export function element(name, properties, ...content) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...content);
  return made;
}
