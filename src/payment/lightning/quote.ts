/** The price of a call in millisatoshis: USD × 10^8 / rate, rounded up to a whole sat, at least 1. `usdUnits` are millionths of a dollar, `btcUsd` a decimal string. */
export function priceMsat(_usdUnits: bigint, _btcUsd: string): bigint {
  throw new Error('not written yet');
}
