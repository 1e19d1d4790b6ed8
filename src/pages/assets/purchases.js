/**
 * Remembers in this browser alone what was bought here, by the payment's nonce and transaction. The service's receipt never says it, because anyone who reads the chain could
 * then read what a payer asks for.
 */

const KEY = 'percall-purchases';
/** The newest purchases that are kept. */
const KEPT = 100;

/** @returns {[id: string, what: string][]} */
function all() {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '[]');
  } catch {
    return [];
  }
}

/** Remembers a purchase under each identifier of its payment. @param {string[]} ids @param {string} what */
export function rememberPurchase(ids, what) {
  const others = all().filter(([known]) => !ids.includes(known));
  try {
    localStorage.setItem(KEY, JSON.stringify([...others, ...ids.map((id) => [id, what])].slice(-KEPT)));
  } catch {
    // A browser that keeps nothing still has its answer.
  }
}

/** What this browser bought with a payment; undefined when it did not. @param {string} id */
export function purchaseOf(id) {
  return all().find(([known]) => known.toLowerCase() === id.toLowerCase())?.[1];
}
