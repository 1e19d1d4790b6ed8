import { hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../sqlite/database.ts';
import { OTHERS } from './account-writes.ts';
import { createChainFacts } from './facts.ts';
import { HOUR } from './hour-memo.ts';

type Hex = `0x${string}`;

/** A block and its time in Unix seconds. */
export interface BlockPlace {
  readonly block: number;
  readonly at: number;
}

/** An unbroken span of blocks that were searched. */
export interface SearchedSpan {
  readonly since: BlockPlace;
  readonly until: BlockPlace;
}

/** The transactions from an account or addressed to it, in the blocks that were searched. */
export interface AccountActivity extends SearchedSpan {
  readonly first: BlockPlace | null;
  readonly last: BlockPlace | null;
  /** False when some hour had more accounts than are kept, so that one may be missing. */
  readonly complete: boolean;
}

/** Accounts that a transfer moved a token to or from, in the blocks that were searched. */
export interface TokenAccounts extends SearchedSpan {
  readonly accounts: number;
  /** False when there are more than are kept. */
  readonly complete: boolean;
}

/** Accounts that were seen in transactions, and in transfers of watched tokens. */
export interface AccountReads {
  /** Null before the first block was searched. */
  activityOf(account: Hex): AccountActivity | null;
  /** Null before the first block was searched. The transfers of tokens that are not watched are not searched, so such a token has no accounts. */
  accountsOfToken(token: Hex): TokenAccounts | null;
  /** The newest transfer that moved a watched token to or from an account; null when none is stored. */
  lastMoved(token: Hex, account: Hex): BlockPlace | null;
}

const SEEN = `SELECT min(first_block), max(last_block) FROM account_hours
  WHERE hour IN (SELECT value FROM json_each(?)) AND account = ?`;

export function createAccountReads(db: Sqlite): AccountReads {
  const seen = db.prepare(SEEN).raw();
  const atOf = db.prepare('SELECT at FROM blocks WHERE number = ?').pluck();
  const counted = db.prepare('SELECT count(*) FROM token_accounts WHERE token = ? AND account <> ?').pluck();
  const moved = db.prepare(
    'SELECT last_block AS block, last_at AS at FROM token_accounts WHERE token = ? AND account = ?',
  );
  const facts = createChainFacts(db);

  const placeOf = (block: number | null): BlockPlace | null => {
    const at = block === null ? undefined : (atOf.get(block) as number | undefined);
    return block === null || at === undefined ? null : { block, at };
  };
  const searched = (kind: 'accounts' | 'logs'): SearchedSpan | null => {
    const span = facts.coverage(kind).at(-1);
    const [since, until] = [placeOf(span?.from ?? null), placeOf(span?.to ?? null)];
    return since && until && { since, until };
  };
  const movedBy = (token: Hex, account: Uint8Array) => moved.get(hexToBytes(token), account) as BlockPlace | undefined;

  return {
    activityOf(account) {
      const span = searched('accounts');
      if (span === null) return null;
      const hours = hoursOf(span);
      const [first, last] = seen.get(hours, hexToBytes(account)) as [number | null, number | null];
      const [others] = seen.get(hours, OTHERS) as [number | null];
      return { ...span, first: placeOf(first), last: placeOf(last), complete: others === null };
    },
    accountsOfToken(token) {
      const span = searched('logs');
      if (span === null) return null;
      const accounts = counted.get(hexToBytes(token), OTHERS) as number;
      return { ...span, accounts, complete: movedBy(token, OTHERS) === undefined };
    },
    lastMoved: (token, account) => movedBy(token, hexToBytes(account)) ?? null,
  };
}

/** The hours that a span touches, as JSON: a table-valued list of keys, so that one prepared statement serves spans of any length. */
function hoursOf({ since, until }: SearchedSpan): string {
  const first = Math.floor(since.at / HOUR) * HOUR;
  return JSON.stringify(
    Array.from({ length: Math.floor((until.at - first) / HOUR) + 1 }, (_, at) => first + at * HOUR),
  );
}
