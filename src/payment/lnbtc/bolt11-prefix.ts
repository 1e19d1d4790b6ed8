/** The amount of an invoice, and the currency prefix of its network. */
export interface InvoicePrice {
  readonly currency: 'bc' | 'tb' | 'bcrt' | 'tbs';
  readonly amountMsat: bigint;
}

/**
 * Currency, amount and multiplier. The amount has one spelling: no leading zero, sign or point. All bitcoin that will ever exist has 20 digits in
 * picobitcoin. An amount of more than 30 digits is refused, because a database could not hold it.
 */
const PREFIX = /^ln(bcrt|bc|tbs|tb)([1-9][0-9]{0,29})([munp]?)$/;

/** Millisatoshis in one unit of each multiplier. `p` is a tenth of a millisatoshi; the code below handles it. */
const UNIT_MSAT = { '': 100_000_000_000n, m: 100_000_000n, u: 100_000n, n: 100n };

/**
 * Reads currency and amount from an invoice's human-readable part in lower case. Null for a missing amount, an unknown currency or multiplier, or a
 * fraction of a millisatoshi.
 */
export function readPrefix(prefix: string): InvoicePrice | null {
  const match = PREFIX.exec(prefix);
  if (!match) return null;
  const currency = match[1] as InvoicePrice['currency'];
  const digits = match[2] ?? '';
  const multiplier = match[3] as keyof typeof UNIT_MSAT | 'p';
  if (multiplier !== 'p') return { currency, amountMsat: BigInt(digits) * UNIT_MSAT[multiplier] };
  // A picobitcoin is a tenth of a millisatoshi.
  return digits.endsWith('0') ? { currency, amountMsat: BigInt(digits.slice(0, -1)) } : null;
}
