import { parseDecimal } from '../../../lib/decimal.ts';
import { MSAT_PER_SAT } from '../../../lib/units.ts';

/** Satoshis per bitcoin (10^8) divided by millionths per dollar (10^6). */
const SATS_PER_BTC_BY_UNITS_PER_USD = 100n;

/**
 * The price of a call in millisatoshis: USD × 10^8 / rate, rounded up to a whole sat, at least 1. `usdUnits` are millionths of a dollar, `btcUsd` is
 * a decimal string. Exact, in integers. Throws RangeError for a rate that is not a positive decimal and for a negative price, because neither may
 * become an invoice.
 */
export function priceMsat(usdUnits: bigint, btcUsd: string): bigint {
  const rate = parseDecimal(btcUsd);
  if (rate === null || rate.digits === 0n) throw new RangeError('a BTC/USD rate that is no positive decimal');
  if (usdUnits < 0n) throw new RangeError('a negative price');
  const dividend = usdUnits * SATS_PER_BTC_BY_UNITS_PER_USD * 10n ** BigInt(rate.scale);
  const sats = (dividend + rate.digits - 1n) / rate.digits;
  return (sats > 0n ? sats : 1n) * MSAT_PER_SAT;
}
