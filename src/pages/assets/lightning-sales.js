// Remembers the invoices shown in this tab, so that a preimage finds its call after a reload or a newer invoice.
// Preimages are not kept.

/** @typedef {import('./reference-lightning.js').Sale} Sale */

const KEY = 'percall-invoices';
/** How long the service takes a proof. */
const REDEEM_MS = 7 * 86_400_000;
const KEPT = 50;
/** An invoice that expires sooner is not shown again: a wallet needs time to pay it. */
const SPARE_MS = 10_000;

// Bech32, of which BOLT11 is made: 5 bits a letter. A tagged field is its type, its length in two letters, and its value.
const LETTERS = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const TIMESTAMP_LETTERS = 7;
/** The signature and the checksum at the end. */
const END_LETTERS = 104 + 6;
const HASH_LETTERS = 52;

/** An invoice's letters from its time to the last tagged field, and their numbers. @param {string} invoice */
function read(invoice) {
  const letters = invoice.toLowerCase().slice(invoice.lastIndexOf('1') + 1, -END_LETTERS);
  return { letters, words: [...letters].map((letter) => LETTERS.indexOf(letter)) };
}

/** When an invoice expires, in Unix milliseconds. @param {Sale['offer']} offer */
export function expiryOf({ maxTimeoutSeconds, extra }) {
  const { words } = read(extra.invoice);
  const createdAt = words.slice(0, TIMESTAMP_LETTERS).reduce((time, word) => time * 32 + word, 0);
  return (createdAt + maxTimeoutSeconds) * 1000;
}

/** The payment hash of a BOLT11 invoice in hex; an empty text where it has none. @param {string} invoice */
function hashOf(invoice) {
  const { letters, words } = read(invoice);
  for (let at = TIMESTAMP_LETTERS; at + 3 <= words.length; ) {
    const size = (words[at + 1] ?? 0) * 32 + (words[at + 2] ?? 0);
    if (letters[at] === 'p' && size === HASH_LETTERS) {
      const bits = words.slice(at + 3, at + 3 + size).map((word) => word.toString(2).padStart(5, '0'));
      return (bits.join('').match(/.{8}/g) ?? []).map((byte) => hex(Number.parseInt(byte, 2))).join('');
    }
    at += 3 + size;
  }
  return '';
}

/** @param {number} byte */
function hex(byte) {
  return byte.toString(16).padStart(2, '0');
}

/** What was shown in this page, for a browser that keeps nothing. @type {Sale[]} */
let shown = [];

/** The invoices that can still bring an answer, the oldest first. @returns {Sale[]} */
function all() {
  try {
    shown = JSON.parse(sessionStorage.getItem(KEY) ?? '[]');
  } catch {
    // What this page has shown is known all the same.
  }
  return shown.filter(({ expiresAt }) => Date.now() < expiresAt + REDEEM_MS);
}

/** @param {Sale[]} sales */
function keep(sales) {
  shown = sales.slice(-KEPT);
  try {
    sessionStorage.setItem(KEY, JSON.stringify(shown));
  } catch {
    // A reload forgets them then.
  }
}

/** @param {Sale} sale */
export function rememberSale(sale) {
  keep([...all().filter(({ offer }) => offer.extra.invoice !== sale.offer.extra.invoice), sale]);
}

/** Has another invoice asked for at the next call; a preimage of this one still finds it. @param {Sale} sale */
export function replaceSale(sale) {
  rememberSale({ ...sale, isReplaced: true });
}

/** @param {Sale} sale */
export function forgetSale(sale) {
  keep(all().filter(({ offer }) => offer.extra.invoice !== sale.offer.extra.invoice));
}

/** The invoice of a call that can still be paid; undefined without one. @param {string} url */
export function openSale(url) {
  return all().findLast((sale) => sale.url === url && !sale.isReplaced && Date.now() < sale.expiresAt - SPARE_MS);
}

// The sale that a preimage pays for; undefined where no invoice shown here has its hash. A page without a secure
// context cannot hash, and takes the sale that it shows.
/** @param {string} preimage @param {Sale} onShow */
export async function saleOf(preimage, onShow) {
  if (!globalThis.crypto?.subtle) return onShow;
  const bytes = Uint8Array.from(preimage.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
  const hash = [...new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))].map(hex).join('');
  return [onShow, ...all()].find(({ offer }) => hashOf(offer.extra.invoice) === hash);
}
