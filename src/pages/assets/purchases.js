/**
 * Remembers in this browser alone what was bought here, by the payment's nonce. The service's receipt never says it, because anyone who reads the chain could
 * then read what a payer asks for.
 */

const KEY = 'percall-purchases';
/** The newest purchases that are kept. */
const KEPT = 100;

/** @returns {[nonce: string, what: string][]} */
function all() {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '[]');
  } catch {
    return [];
  }
}

/** @param {string} nonce @param {string} what */
export function rememberPurchase(nonce, what) {
  const others = all().filter(([known]) => known !== nonce);
  try {
    localStorage.setItem(KEY, JSON.stringify([...others, [nonce, what]].slice(-KEPT)));
  } catch {
    // A browser that keeps nothing still has its answer.
  }
}

/** What this browser bought with a payment; undefined when it did not. @param {string} nonce */
export function purchaseOf(nonce) {
  return all().find(([known]) => known === nonce)?.[1];
}
