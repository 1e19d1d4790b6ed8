/** Describes an answer's two payment headers for people. Pure, so that it can be tested without a browser. */

/** @typedef {[label: string, text: string]} Fact */
/** @typedef {{ title: string, facts: Fact[] }} Group */
/** @typedef {{ header: string, groups: Group[], json: string | null }} Description `json` is null for a header that cannot be read. */
/** @typedef {Record<string, unknown>} Fields */

const USDC_DECIMALS = 6;
const SAT_DECIMALS = 3;
/** @type {readonly [unit: string, seconds: number][]} */
const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];
/** The facts that are read out. */
const SPOKEN = new Set(['Price', 'Pay to', 'Network', 'Settled', 'Reason']);

// Describes an answer's payment header; null without one. `headers` has lower-case names. A header of an unknown shape
// is shown as JSON rather than hidden.
/** @param {Record<string, string>} headers @returns {Description | null} */
export function describePayment(headers) {
  const required = headers['payment-required'];
  if (required !== undefined) return describe('PAYMENT-REQUIRED', required, challengeGroups);
  const response = headers['payment-response'];
  if (response !== undefined) return describe('PAYMENT-RESPONSE', response, receiptGroups);
  return null;
}

/** In short, to be read out: the first way to pay, or the payment's result. @param {Description | null} description */
export function summarisePayment(description) {
  if (description === null) return '';
  if (description.json === null) return `Its ${description.header} header cannot be read.`;
  const facts = description.groups[0]?.facts ?? [];
  const spoken = facts.filter(([label]) => SPOKEN.has(label));
  return spoken.map(([label, text]) => `${label}: ${text}.`).join(' ');
}

/** @param {string} header @param {string} value @param {(c: Fields) => Group[]} groupsOf @returns {Description} */
function describe(header, value, groupsOf) {
  /** @type {Fields | null} */
  const content = attempt(() => JSON.parse(decodeBase64(value)), null);
  if (content === null) return { header, groups: [], json: null };
  return { header, groups: attempt(() => groupsOf(content), []), json: JSON.stringify(content, null, 2) };
}

/** @template T @param {() => T} work @param {T} otherwise @returns {T} */
function attempt(work, otherwise) {
  try {
    return work();
  } catch {
    return otherwise;
  }
}

/** @param {string} text */
function decodeBase64(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
}

/** @param {Fields} challenge @returns {Group[]} */
function challengeGroups({ error, resource, accepts }) {
  const ways = /** @type {Fields[]} */ (accepts);
  const title = (/** @type {number} */ index) =>
    ways.length > 1 ? `Way to pay ${index + 1} of ${ways.length}` : 'How to pay';
  return [
    ...ways.map((way, index) => ({ title: title(index), facts: wayFacts(way) })),
    { title: 'Why', facts: present({ Reason: error, For: /** @type {Fields | undefined} */ (resource)?.url }) },
  ];
}

/** @param {Fields} way */
function wayFacts({ scheme, network, amount, asset, payTo, maxTimeoutSeconds, extra }) {
  const { assetTransferMethod, name, invoice } = /** @type {Fields} */ (extra ?? {});
  return present({
    Price: priceOf(amount, network),
    'Pay to': payTo,
    Network: network,
    Asset: asset,
    'Valid for': validityOf(maxTimeoutSeconds),
    Scheme: [scheme, assetTransferMethod, name].filter(Boolean).join(', '),
    Invoice: invoice,
  });
}

/** @param {Fields} receipt @returns {Group[]} */
function receiptGroups({ success, transaction, network, amount, payer, errorReason }) {
  const facts = present({
    Settled: success === true ? 'yes' : 'no',
    Reason: errorReason,
    Price: amount === undefined ? undefined : priceOf(amount, network),
    Transaction: transaction,
    Network: network,
    Payer: payer,
  });
  return [{ title: 'Receipt', facts }];
}

/** @param {Fields} facts @returns {Fact[]} */
function present(facts) {
  return Object.entries(facts).flatMap(([label, text]) =>
    typeof text === 'string' && text !== '' ? [[label, text]] : [],
  );
}

/** Lightning amounts are in millisatoshis, others in base units. @param {unknown} amount @param {unknown} network */
function priceOf(amount, network) {
  const base = BigInt(String(amount));
  return String(network).startsWith('lnbtc:')
    ? `${decimal(base, SAT_DECIMALS)} sat (${base} msat)`
    : `${decimal(base, USDC_DECIMALS)} USDC (${base} base units)`;
}

/** @param {bigint} base @param {number} decimals */
function decimal(base, decimals) {
  const digits = base.toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, -decimals);
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** @param {unknown} seconds */
function validityOf(seconds) {
  if (typeof seconds !== 'number') return undefined;
  let left = seconds;
  const parts = UNITS.flatMap(([unit, length]) => {
    const count = Math.floor(left / length);
    left -= count * length;
    return count === 0 ? [] : [`${count} ${unit}${count === 1 ? '' : 's'}`];
  });
  return `at most ${parts.join(' ')} (${seconds} s)`;
}
