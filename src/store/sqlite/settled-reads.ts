import type { Sqlite } from './database.ts';

/** Payments that came in on one rail within a span. */
export interface SettledSum {
  readonly rail: 'usdc' | 'lightning';
  /** USDC: the contract that payers signed for, which tells the plain rail from the Gateway's; null on Lightning. */
  readonly contract: Uint8Array | null;
  readonly count: number;
  /** Base units of USDC, or millisatoshis. */
  readonly amount: bigint;
}

/** Reader of what was earned; plain SQL that PostgreSQL runs too. */
export interface SettledReads {
  /** What settled, or was claimed through our own routes, from `from` (inclusive) to `to` (exclusive), in Unix milliseconds. Costs what lies in between. */
  settledBetween(from: number, to: number): Promise<SettledSum[]>;
}

const SETTLED = `SELECT contract, count(*) AS count, CAST(sum(amount) AS TEXT) AS amount
  FROM usdc_payments WHERE state = 'settled' AND ended_at >= @from AND ended_at < @to GROUP BY contract ORDER BY contract`;
const CLAIMED = `SELECT NULL AS contract, count(*) AS count, CAST(coalesce(sum(CAST(amount_msat AS BIGINT)), 0) AS TEXT) AS amount
  FROM lightning_claims WHERE request_hash IS NOT NULL AND claimed_at >= @from AND claimed_at < @to`;

interface Row {
  readonly contract: Uint8Array | null;
  readonly count: number;
  readonly amount: string;
}

export function createSettledReads(db: Sqlite): SettledReads {
  const settled = db.prepare<{ from: number; to: number }, Row>(SETTLED);
  const claimed = db.prepare<{ from: number; to: number }, Row>(CLAIMED);
  return {
    settledBetween: async (from, to) => [
      ...settled.all({ from, to }).map((row) => sumOf('usdc', row)),
      ...claimed.all({ from, to }).map((row) => sumOf('lightning', row)),
    ],
  };
}

function sumOf(rail: SettledSum['rail'], { contract, count, amount }: Row): SettledSum {
  return { rail, contract, count, amount: BigInt(amount) };
}
