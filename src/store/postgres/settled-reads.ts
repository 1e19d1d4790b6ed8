import { type Pools, statement } from '../db/connections.ts';
import { EARNED } from '../payment-columns.ts';
import type { SettledReads, SettledSum } from '../ports/payments.ts';

type Span = { from: number; to: number };
type Row = Omit<SettledSum, 'rail'>;

const SETTLED = statement<Span>(`
  SELECT contract, count(*) AS count, sum(${EARNED}) AS amount
    FROM usdc_payments WHERE state = 'settled' AND ended_at >= @from AND ended_at < @to GROUP BY contract ORDER BY contract`);
const CLAIMED = statement<Span>(`
  SELECT NULL AS contract, count(*) AS count, coalesce(sum(amount_msat), 0) AS amount
    FROM lightning_claims WHERE request_hash IS NOT NULL AND claimed_at >= @from AND claimed_at < @to`);

/** The reader of what was earned, on PostgreSQL. */
export function createSettledReads({ read }: Pools): SettledReads {
  return {
    settledBetween: async (from, to) => {
      const [settled, claimed] = await Promise.all([
        read<Row>(SETTLED({ from, to })),
        read<Row>(CLAIMED({ from, to })),
      ]);
      return [
        ...settled.map((row) => ({ ...row, rail: 'usdc' as const })),
        ...claimed.map((row) => ({ ...row, rail: 'lightning' as const })),
      ];
    },
  };
}
