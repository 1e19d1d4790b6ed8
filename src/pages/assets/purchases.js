// Remembers in this browser what was bought here, by the payment's nonce and transaction. The service's receipt never
// says it: with the chain it would tell anyone what a payer asks for.

const KEY = 'percall-purchases';
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

/** Undefined where this browser bought nothing with it. @param {string} id */
export function purchaseOf(id) {
  return all().find(([known]) => known.toLowerCase() === id.toLowerCase())?.[1];
}
