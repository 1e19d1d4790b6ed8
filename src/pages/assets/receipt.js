import { purchaseOf } from './purchases.js';

/** Adds to a receipt what this browser bought with the payment. The browser alone knows it, and the text stays text. */

const place = document.querySelector('#bought');
const what = place instanceof HTMLElement ? purchaseOf(place.dataset.payment ?? '') : undefined;
if (place && typeof what === 'string') {
  const code = document.createElement('code');
  code.textContent = what;
  place.replaceChildren(
    'In this browser: ',
    code,
    '. Only this browser knows it; the service’s page does not say what a payment bought.',
  );
}
