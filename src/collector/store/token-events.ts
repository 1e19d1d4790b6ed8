import { bytesToHex } from '../../lib/hex.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { createChainFacts } from './facts.ts';

// The project token's burns, its distributor's payouts, and the blocks in which they were looked for.

/** `amount` in base units of the token, or of USDC's ERC-20; `account` burned, or was paid. */
export interface TokenEvent {
  readonly kind: 'burn' | 'payout';
  readonly amount: bigint;
  readonly account: `0x${string}`;
  readonly block: number;
  /** Unix seconds. */
  readonly at: number;
  readonly transaction: `0x${string}`;
}

interface TokenTotals {
  readonly total: bigint;
  readonly recent: bigint;
  readonly events: number;
  readonly accounts: number;
}

export interface TokenReads {
  /** The first block whose logs were ever searched. Its time is its hour's once it is rolled up. */
  searchedSince(): { readonly block: number; readonly at: number | null } | null;
  tokenTotals(kind: TokenEvent['kind'], since: number): TokenTotals;
  /** Newest first. */
  tokenEvents(limit: number): TokenEvent[];
}

const RECENT = `SELECT kind, amount, account, block, at, transaction_hash AS "transaction" FROM token_events
  ORDER BY block DESC, log_index DESC LIMIT ?`;

type TokenRow = { account: Uint8Array; transaction: Uint8Array; amount: string } & Pick<
  TokenEvent,
  'kind' | 'block' | 'at'
>;

export function createTokenReads(db: Sqlite): TokenReads {
  const amounts = db.prepare('SELECT amount, at FROM token_events WHERE kind = ?').raw();
  const accounts = db.prepare('SELECT count(DISTINCT account) FROM token_events WHERE kind = ?').pluck();
  const recent = db.prepare(RECENT);
  const facts = createChainFacts(db);
  const timeOf = db
    .prepare('SELECT coalesce((SELECT at FROM blocks WHERE number = ?), (SELECT min(at) FROM hours))')
    .pluck();
  return {
    searchedSince() {
      const starts = [facts.first(), facts.coverage('logs')[0]?.from ?? null].filter((block) => block !== null);
      if (starts.length === 0) return null;
      const block = Math.min(...starts);
      return { block, at: timeOf.get(block) as number | null };
    },
    tokenTotals(kind, since) {
      let [total, later, events] = [0n, 0n, 0];
      // Amounts with 18 decimals do not fit SQLite's integers.
      for (const row of amounts.iterate(kind)) {
        const [text, at] = row as [string, number];
        const amount = BigInt(text);
        total += amount;
        if (at >= since) later += amount;
        events += 1;
      }
      return { total, recent: later, events, accounts: accounts.get(kind) as number };
    },
    tokenEvents: (limit) =>
      (recent.all(limit) as TokenRow[]).map(({ account, transaction, amount, ...rest }) => ({
        ...rest,
        amount: BigInt(amount),
        account: bytesToHex(account),
        transaction: bytesToHex(transaction),
      })),
  };
}
