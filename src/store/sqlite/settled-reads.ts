import type { Sqlite } from '../../lib/sqlite-file.ts';
import { EARNED } from '../payment-columns.ts';
import type { SettledReads, SettledSum } from '../ports/payments.ts';

const SETTLED = `SELECT contract, count(*) AS count, CAST(sum(${EARNED}) AS TEXT) AS amount
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
