import { formatUsdc } from '../money.ts';
import type { Refusal } from '../port.ts';

// What is deposited into payment channels. A deposit is no spending, but a seller may keep it for the time of its
// withdrawal, so it is bounded apart from the budgets: by host and day, by day over all hosts, and to one channel of
// a host. What was signed counts, whatever the seller says became of it.

const DAY = 86_400;
/** The most of a day over all hosts, in base units, unless a call's own limit is higher. */
const MOST_OF_A_DAY = 5_000_000n;

/** Made where it is missing: a record of an earlier percall has none. `payment` is the row that it was signed for. */
export const DEPOSITS_SCHEMA = `
CREATE TABLE IF NOT EXISTS deposits (
  payment TEXT NOT NULL, channel TEXT NOT NULL, host TEXT NOT NULL, network TEXT NOT NULL, asset TEXT NOT NULL,
  payer TEXT NOT NULL, units INTEGER NOT NULL, at INTEGER NOT NULL, pinned INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX IF NOT EXISTS deposits_by_host ON deposits (host, at);
`;

interface DepositParts {
  readonly all: (sql: string, ...values: unknown[]) => Record<string, unknown>[];
  readonly run: (sql: string, ...values: unknown[]) => number;
  readonly write: <T>(work: () => T) => T;
  /** Unix seconds. */
  readonly now: () => number;
}

/** Why a deposit is not signed, in words for the buyer. Null: nothing speaks against it. */
type Objection = { readonly reason: Refusal; readonly message: string } | null;

/** Whose channel with whom. */
export interface ChannelOf {
  readonly host: string;
  readonly network: string;
  readonly asset: string;
  readonly payer: string;
  readonly channel: string;
}

export interface NewDeposit extends ChannelOf {
  /** The id of its payment. */
  readonly id: string;
  readonly units: bigint;
  /** The most of a day for this host, in base units. */
  readonly most: bigint;
  /** Whether the host is held to this channel from now on. */
  readonly isPinned: boolean;
}

export function createDeposits({ all, run, write, now }: DepositParts) {
  /** Objects where this host has a deposit of this payer in another channel, until a person accepts a further one. */
  function objectionTo({ host, network, asset, payer, channel }: ChannelOf): Objection {
    const [other] = all(
      `SELECT channel FROM deposits WHERE host = ? AND network = ? AND lower(asset) = ? AND payer = ? AND pinned = 1
       AND channel <> ? LIMIT 1`,
      ...[host, network, asset.toLowerCase(), payer.toLowerCase(), channel],
    );
    if (!other) return null;
    const text = `${host} names another payment channel than ${other.channel}, which has a deposit`;
    const how = `percall wallet unpin ${host} accepts the new one`;
    return { reason: 'not-pinned', message: `${text}: ${how}; nothing was signed` };
  }

  /** What was deposited within the last day, with one host where it is named. */
  function ofDay(host: string | null): bigint {
    const [sum] = all(
      'SELECT coalesce(sum(units), 0) AS units FROM deposits WHERE at > ? AND (? IS NULL OR host = ?)',
      ...[now() - DAY, host, host],
    );
    return BigInt((sum?.units ?? 0n) as bigint);
  }

  function overrunOf({ host, units, most }: NewDeposit): Objection {
    const bounds = [
      { before: ofDay(host), most, whose: `with ${host}` },
      { before: ofDay(null), most: most > MOST_OF_A_DAY ? most : MOST_OF_A_DAY, whose: 'with all hosts' },
    ];
    const over = bounds.find((bound) => bound.before + units > bound.most);
    if (!over) return null;
    const text = `a deposit of ${formatUsdc(units)} after ${formatUsdc(over.before)} within a day ${over.whose}`;
    const message = `${text} is above ${formatUsdc(over.most)} (--max-deposit); nothing was signed`;
    return { reason: 'above-limit', message };
  }

  return {
    objectionTo,

    /**
     * Counts a deposit before it is signed, in one transaction. Objects, and counts nothing, where the host has another
     * channel, and where the day has no room.
     */
    count(deposit: NewDeposit): Objection {
      return write((): Objection => {
        // Before its voucher is kept, nothing of a payment was presented: a crash left a deposit that nobody has.
        run(
          "DELETE FROM deposits WHERE payment IN (SELECT id FROM payments WHERE id = ? AND state = 'counted')",
          deposit.id,
        );
        const objection = objectionTo(deposit) ?? overrunOf(deposit);
        if (objection) return objection;
        run(
          `INSERT INTO deposits (payment, channel, host, network, asset, payer, units, at, pinned)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
          ...[deposit.id, deposit.channel, deposit.host, deposit.network, deposit.asset, deposit.payer],
          ...[deposit.units, now(), deposit.isPinned ? 1 : 0],
        );
        return null;
      });
    },

    /** Lets the host have another channel. What was deposited stays counted. Returns how many channels that are. */
    unpin(host: string): number {
      const [found] = all('SELECT count(DISTINCT channel) AS n FROM deposits WHERE host = ? AND pinned = 1', host);
      run('UPDATE deposits SET pinned = 0 WHERE host = ?', host);
      return Number(found?.n ?? 0);
    },
  };
}
