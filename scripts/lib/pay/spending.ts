import { formatUsdc } from './usdc.ts';

/** The amounts that a buyer compares before it signs, in USDC base units. */
export interface Spending {
  readonly asked: bigint;
  readonly ceiling: bigint;
  /** Null when the seller lists no price. */
  readonly listed: bigint | null;
}

/** Why this must not be paid, as text for the buyer; null when it may be paid. */
export function refusalOf({ asked, ceiling, listed }: Spending): string | null {
  if (asked > ceiling) return `${formatUsdc(asked)} is above the ceiling of ${formatUsdc(ceiling)} (--max-usdc)`;
  if (listed !== null && asked > listed) {
    return `${formatUsdc(asked)} is above the seller's own listed price of ${formatUsdc(listed)}`;
  }
  return null;
}
