import { createHash, randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { formatSats, formatUsdc } from '../money.ts';
import type { Amount, Answer, Budget, BudgetScope, Payment, WayName } from '../port.ts';
import { createDeposits, DEPOSITS_SCHEMA } from './deposits.ts';

// The buyer's durable record: one SQLite file in the data folder, which several processes may use at once.
//
// A row of `payments` goes: counted → signed → arrived → answered. Each step is one transaction that is on disk before
// the next thing happens outside:
// 1. `count` checks every budget and writes the payment with all that will be signed. Only then it is signed.
// 2. `sign` keeps the signed payment. Only then it is presented.
// 3. `arrive` keeps the answer and deletes the signed payment. Only then the answer is delivered.
// 4. `answer` notes the delivery.
// So after a crash at any point the same call finds its row, and goes on where the row stands. What was counted and not
// signed is signed anew from the same content: the same authorization, or the same invoice.
//
// Others leave the way: `returned` (expired and unused, or a wallet is certain that it has not paid), `refused` (a
// voucher
// that took nothing by the seller's word; the channel's next one covers it), `dropped` (given up by a person).

/** A payment before its signature. */
export interface NewPayment {
  /** What the call is, for people; no body. */
  readonly call: string;
  readonly host: string;
  readonly callHash: string;
  readonly payer: string;
  readonly way: WayName;
  readonly amount: Amount;
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  readonly reference: string;
  readonly expiresAt: number | null;
  /** What will be signed or paid, as JSON. */
  readonly plan: unknown;
  /** The channel that it is paid over; null without one. */
  readonly channel: string | null;
}

/** A row that is worked on. */
export interface Row extends Payment {
  readonly payer: string;
  readonly asset: string;
  readonly plan: unknown;
  /** The headers that present it; null before it is signed, and once its answer is here. */
  readonly signed: Readonly<Record<string, string>> | null;
  readonly answer: Answer | null;
  readonly channel: string | null;
}

/** What a budget has no room for, or null. In words for the buyer. */
type Overrun = string | null;

interface Counting {
  readonly rate: bigint | null;
  /** Of `openOf`. */
  readonly payers: readonly string[];
  readonly me: string;
}

/** How `count` ended. */
export type Counted =
  | { readonly kind: 'counted'; readonly row: Row }
  /** Another payment of this call is open already. */
  | { readonly kind: 'open'; readonly row: Row }
  | { readonly kind: 'over'; readonly message: string }
  /** The channel, or the invoice, belongs to another call that waits. */
  | { readonly kind: 'taken'; readonly row: Row };

/** This process among those that share the record. One call in it holds a row by a name that begins with its own. */
export interface Holder {
  readonly name: string;
  /** Whether the process of another holder's name still runs, as far as that can be told. */
  isAlive(other: string): boolean;
}

const FILE = 'wallet.db';
/** A wallet is written for milliseconds at a time. */
const BUSY_MS = 30_000;
/**
 * In seconds. A holder renews it far more often; after a crash on another machine the row is free once it has ended.
 */
export const LEASE_SECONDS = 30;
/** An answer that was delivered is kept for another process that waits for the same call. In seconds. */
const KEPT_SECONDS = 60;
const HOUR = 3600;
const DAY = 86_400;

const SCHEMA = `
CREATE TABLE payments (
  id TEXT PRIMARY KEY, call TEXT NOT NULL, host TEXT NOT NULL, call_hash TEXT NOT NULL, payer TEXT NOT NULL,
  way TEXT NOT NULL, units INTEGER, msat INTEGER, network TEXT NOT NULL, asset TEXT NOT NULL, pay_to TEXT NOT NULL,
  reference TEXT NOT NULL, channel TEXT, voucher INTEGER, at INTEGER NOT NULL, expires_at INTEGER, state TEXT NOT NULL,
  plan TEXT, signed TEXT, answer_status INTEGER, answer_type TEXT, answer BLOB, transaction_id TEXT,
  answered_at INTEGER, note TEXT, holder TEXT, leased_until INTEGER, looked_up INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX one_payment_a_call ON payments (call_hash, payer) WHERE state IN ('counted', 'signed', 'arrived');
CREATE UNIQUE INDEX one_payment_a_channel ON payments (channel) WHERE state IN ('counted', 'signed');
CREATE UNIQUE INDEX one_payment_an_invoice ON payments (reference) WHERE msat IS NOT NULL AND state <> 'returned';
CREATE INDEX payments_by_time ON payments (at);
CREATE TABLE budgets (
  scope TEXT NOT NULL, host TEXT NOT NULL, unit TEXT NOT NULL, most INTEGER NOT NULL, PRIMARY KEY (scope, host, unit)
) STRICT;
CREATE TABLE pins (
  host TEXT NOT NULL, network TEXT NOT NULL, asset TEXT NOT NULL, pay_to TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY (host, network, asset, pay_to)
) STRICT;
CREATE TABLE channels (id TEXT PRIMARY KEY, signed_to INTEGER NOT NULL) STRICT;
PRAGMA user_version = 1;
`;

const OPEN = "state IN ('counted', 'signed', 'arrived')";
/** What budgets count: everything but what was given back. */
const SPENT = "state <> 'returned'";

/** Identifies a call: its method, URL or tool, and its body. */
export function callHashOf(name: string, body: Uint8Array | null): string {
  return createHash('sha256')
    .update(name, 'utf8')
    .update('\n')
    .update(body ?? '')
    .digest('hex');
}

export type Wallet = ReturnType<typeof openRecord>;

/** Opens the record in a folder, both for their owner alone. Throws when the folder or the file cannot be used. */
export function openRecord(folder: string, now: () => number, holder: Holder) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, FILE);
  const isNew = !existsSync(path);
  const umask = process.umask(0o077);
  const db = new Database(path, { timeout: BUSY_MS });
  process.umask(umask);
  if (isNew) chmodSync(path, 0o600);
  db.defaultSafeIntegers(true);
  // Without a WAL, what is deleted is gone: pages are overwritten, and the journal is cut at each commit.
  for (const setting of ['secure_delete = ON', 'journal_mode = TRUNCATE', 'synchronous = FULL']) db.pragma(setting);
  const write = <T>(work: () => T): T => db.transaction(work).immediate();
  write(() => {
    const { user_version: version } = db.prepare('PRAGMA user_version').get() as { user_version: bigint };
    if (version > 1n) throw new Error(`${path} is of a newer percall`);
    if (version === 0n) db.exec(SCHEMA);
    db.exec(DEPOSITS_SCHEMA);
  });

  const get = (sql: string, ...values: unknown[]): Row | null => {
    const row = db.prepare(sql).get(...values);
    return row ? rowOf(row as Record<string, unknown>) : null;
  };
  const all = (sql: string, ...values: unknown[]) => db.prepare(sql).all(...values) as Record<string, unknown>[];
  const run = (sql: string, ...values: unknown[]): number => Number(db.prepare(sql).run(...values).changes);
  const byId = (id: string): Row | null => get('SELECT * FROM payments WHERE id = ?', id);

  const budgets = createBudgets({ all, now });
  const deposits = createDeposits({ all, run, write, now });

  /** The open payment of a call by one of these payers; of any where none is named. */
  const openOf = (callHash: string, payers: readonly string[]): Row | null =>
    get(
      `SELECT * FROM payments WHERE call_hash = ? AND ${OPEN}
       AND (payer IN (SELECT value FROM json_each(?)) OR json_array_length(?) = 0) ORDER BY at LIMIT 1`,
      callHash,
      JSON.stringify(payers),
      JSON.stringify(payers),
    );

  return {
    openOf,
    byId,

    /**
     * Counts a payment against every budget and keeps it, in one transaction, held by `me`. `rate` is the buyer's
     * own, in base units for a bitcoin, for sats whose value was not known when they were paid. `payers` are those
     * whose open payment is this call's too: a seller may ask in sats once and in USDC the next time.
     */
    count(payment: NewPayment, { rate, payers, me }: Counting): Counted {
      return write((): Counted => {
        const open = openOf(payment.callHash, payers);
        if (open) return { kind: 'open', row: open };
        const taken = get(
          `SELECT * FROM payments WHERE (channel = ?1 AND state IN ('counted', 'signed'))
           OR (?2 AND msat IS NOT NULL AND reference = ?3 AND ${SPENT}) LIMIT 1`,
          payment.channel,
          payment.amount.msat === null ? 0 : 1,
          payment.reference,
        );
        if (taken) return { kind: 'taken', row: taken };
        const over = budgets.overrunOf(payment.host, payment.amount, rate);
        if (over !== null) return { kind: 'over', message: over };
        const id = randomUUID();
        const { amount } = payment;
        run(
          `INSERT INTO payments (id, call, host, call_hash, payer, way, units, msat, network, asset, pay_to, reference,
             channel, at, expires_at, state, plan, holder, leased_until)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'counted', ?, ?, ?)`,
          ...[id, payment.call, payment.host, payment.callHash, payment.payer, payment.way, amount.units, amount.msat],
          ...[payment.network, payment.asset, payment.payTo, payment.reference, payment.channel, now()],
          ...[payment.expiresAt, JSON.stringify(payment.plan), me, now() + LEASE_SECONDS],
        );
        return { kind: 'counted', row: byId(id) as Row };
      });
    },

    /**
     * Counts a voucher before it is signed: what it adds to the highest that this wallet has signed in its channel. The
     * row was counted with `price`. Returns why a budget has no room for more, or null.
     */
    countVoucher(id: string, channel: string, voucher: { readonly upTo: bigint; readonly price: bigint }): Overrun {
      return write((): Overrun => {
        const [known] = all('SELECT signed_to FROM channels WHERE id = ?', channel);
        const highest = known ? BigInt(known.signed_to as bigint) : voucher.upTo - voucher.price;
        const added = voucher.upTo > highest ? voucher.upTo - highest : 0n;
        const [row] = all('SELECT host, units, voucher FROM payments WHERE id = ?', id);
        if (!row) throw new Error(`the payment ${id} is gone`);
        const counted = BigInt(row.units as bigint);
        const units = row.voucher === null ? added : counted + added;
        const more = { units: units - counted, msat: null };
        const over = more.units > 0n ? budgets.overrunOf(String(row.host), more, null) : null;
        if (over !== null) return over;
        run('UPDATE payments SET units = ?, voucher = ? WHERE id = ?', units, voucher.upTo, id);
        run(
          `INSERT INTO channels (id, signed_to) VALUES (?, ?)
           ON CONFLICT (id) DO UPDATE SET signed_to = max(signed_to, excluded.signed_to)`,
          channel,
          voucher.upTo,
        );
        return null;
      });
    },

    /** Keeps what presents the payment. */
    sign(id: string, headers: Readonly<Record<string, string>>): void {
      run(
        "UPDATE payments SET state = 'signed', signed = ? WHERE id = ? AND state IN ('counted', 'signed')",
        JSON.stringify(headers),
        id,
      );
    },

    /** Keeps the answer until it is delivered and deletes what could present the payment. pay.ts pins the recipient. */
    arrive(id: string, answer: Answer, transaction: string | null): void {
      write(() => {
        run(
          `UPDATE payments SET state = 'arrived', plan = NULL, signed = NULL, answer_status = ?, answer_type = ?,
             answer = ?, transaction_id = ?, answered_at = ?, note = NULL
           WHERE id = ? AND state IN ('counted', 'signed')`,
          ...[answer.status, answer.contentType, answer.body, transaction, now(), id],
        );
      });
    },

    /** Notes that the answer was delivered. Answers that were delivered a minute ago are deleted. */
    answer(id: string): void {
      write(() => {
        run("UPDATE payments SET state = 'answered', answered_at = ? WHERE id = ? AND state = 'arrived'", now(), id);
        run(
          "UPDATE payments SET answer = NULL WHERE state = 'answered' AND answer IS NOT NULL AND answered_at < ?",
          now() - KEPT_SECONDS,
        );
      });
    },

    /** Forgets a payment that was counted and never signed: the process that counted it is certain. */
    uncount(id: string): void {
      write(() => {
        // What the row has added to its channel was not signed either.
        run(
          `UPDATE channels SET signed_to = signed_to - p.units FROM payments p
           WHERE p.id = ? AND p.state = 'counted' AND channels.id = p.channel AND channels.signed_to = p.voucher`,
          id,
        );
        run("DELETE FROM deposits WHERE payment IN (SELECT id FROM payments WHERE id = ? AND state = 'counted')", id);
        run("DELETE FROM payments WHERE id = ? AND state = 'counted'", id);
      });
    },

    /** Gives a payment back to the budgets, and ends it unless its answer is here. */
    giveBack(id: string): void {
      run(
        `UPDATE payments SET state = 'returned', plan = NULL, signed = NULL, looked_up = 1
         WHERE id = ? AND state <> 'returned'`,
        id,
      );
    },

    /**
     * Ends a voucher that took nothing by the seller's word. It stays counted until the channel's next one covers it.
     */
    refuse(id: string, note: string): void {
      run(
        "UPDATE payments SET state = 'refused', plan = NULL, signed = NULL, note = ? WHERE id = ? AND state = 'signed'",
        note,
        id,
      );
    },

    drop(id: string): boolean {
      const forget = 'plan = NULL, signed = NULL, answer = NULL';
      return run(`UPDATE payments SET state = 'dropped', ${forget} WHERE id = ? AND ${OPEN}`, id) > 0;
    },

    note(id: string, note: string): void {
      run('UPDATE payments SET note = ? WHERE id = ?', note, id);
    },

    /**
     * Takes a row, or renews it. False while another process, or another call of this one, works on it. One that has
     * ended is no
     * hindrance, and neither is one whose lease has.
     */
    hold(id: string, me: string): boolean {
      return write(() => {
        const [held] = all('SELECT holder, leased_until FROM payments WHERE id = ?', id);
        if (!held) return false;
        const other = held.holder === null || held.holder === me ? null : String(held.holder);
        if (other !== null && BigInt(held.leased_until as bigint) > BigInt(now()) && holder.isAlive(other))
          return false;
        return run('UPDATE payments SET holder = ?, leased_until = ? WHERE id = ?', me, now() + LEASE_SECONDS, id) > 0;
      });
    },

    release(id: string, me: string): void {
      run('UPDATE payments SET holder = NULL, leased_until = NULL WHERE id = ? AND holder = ?', id, me);
    },

    open: (): readonly Payment[] => all(`SELECT * FROM payments WHERE ${OPEN} ORDER BY at, id`).map(rowOf).map(shown),
    history: (): readonly Payment[] =>
      all(`SELECT * FROM payments WHERE NOT (${OPEN}) ORDER BY at DESC, id`).map(rowOf).map(shown),

    /** Authorizations on these networks that have expired and were not looked up yet: their payer, asset and nonce. */
    expired: (network: string): readonly Row[] =>
      all(
        `SELECT * FROM payments WHERE way IN ('exact', 'mpp') AND network = ? AND expires_at < ? AND looked_up = 0
         AND state <> 'returned' ORDER BY at`,
        network,
        now(),
      ).map(rowOf),

    /** Notes that the chain has used an authorization, so that it is not looked up again. */
    used(id: string): void {
      run('UPDATE payments SET looked_up = 1 WHERE id = ?', id);
    },

    budgets: {
      list: budgets.list,
      /** Whether a budget in USDC holds for a host, so that sats need a value. */
      inUsdc: (host: string): boolean =>
        budgets.list().some(({ unit, scope }) => unit === 'usdc' && holds(scope, host)),
      /** Whether sats of unknown value were paid within the longest budget's time. */
      hasUnvalued: (): boolean =>
        all(`SELECT 1 FROM payments WHERE at > ? AND units IS NULL AND ${SPENT} LIMIT 1`, now() - DAY).length > 0,
      set(scope: BudgetScope, unit: Budget['unit'], most: bigint | null): void {
        const [name, host] = typeof scope === 'string' ? [scope, ''] : ['host', scope.host];
        if (most === null) run('DELETE FROM budgets WHERE scope = ? AND host = ? AND unit = ?', name, host, unit);
        else
          run(
            `INSERT INTO budgets (scope, host, unit, most) VALUES (?, ?, ?, ?)
             ON CONFLICT (scope, host, unit) DO UPDATE SET most = excluded.most`,
            ...[name, host, unit, most],
          );
      },
    },

    pinsOf: (host: string): readonly Pin[] =>
      all('SELECT network, asset, pay_to FROM pins WHERE host = ? ORDER BY at', host).map((row) => ({
        network: String(row.network),
        asset: String(row.asset),
        payTo: String(row.pay_to),
      })),
    pin(host: string, { network, asset, payTo }: Pin): void {
      run(
        'INSERT OR IGNORE INTO pins (host, network, asset, pay_to, at) VALUES (?, ?, ?, ?, ?)',
        host,
        network,
        asset,
        payTo,
        now(),
      );
    },
    unpin: (host: string): number => write(() => run('DELETE FROM pins WHERE host = ?', host) + deposits.unpin(host)),

    deposits,

    close: (): void => void db.close(),
  };
}

/** Where a host is paid. */
export interface Pin {
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
}

const holds = (scope: BudgetScope, host: string): boolean => typeof scope === 'string' || scope.host === host;

interface BudgetParts {
  readonly all: (sql: string, ...values: unknown[]) => Record<string, unknown>[];
  /** Unix seconds. */
  readonly now: () => number;
}

const MSAT_PER_BTC = 100_000_000_000n;

/** What sats are worth at a rate in base units for a bitcoin, rounded up. */
export const usdcValue = (msat: bigint, rate: bigint): bigint => (msat * rate + MSAT_PER_BTC - 1n) / MSAT_PER_BTC;

function createBudgets({ all, now }: BudgetParts) {
  /** What is taken since a moment, and of one host where it is named. Sats of unknown value are apart. */
  function taken(since: number, host: string | null) {
    const [sums] = all(
      `SELECT coalesce(sum(units), 0) AS units, coalesce(sum(msat), 0) AS msat,
         coalesce(sum(CASE WHEN units IS NULL THEN msat END), 0) AS unvalued
       FROM payments WHERE at > ? AND ${SPENT} AND (? IS NULL OR host = ?)`,
      since,
      host,
      host,
    );
    const sum = (name: string): bigint => BigInt((sums?.[name] ?? 0n) as bigint);
    return { units: sum('units'), msat: sum('msat'), unvalued: sum('unvalued') };
  }

  function list(): Budget[] {
    return all('SELECT scope, host, unit, most FROM budgets ORDER BY scope, host, unit').map((row) => {
      const scope = row.scope === 'host' ? { host: String(row.host) } : (row.scope as 'call' | 'hour' | 'day');
      const unit = row.unit as Budget['unit'];
      const spent = spentOf(scope);
      return { scope, unit, most: BigInt(row.most as bigint), spent: unit === 'usdc' ? spent.units : spent.msat };
    });
  }

  function spentOf(scope: BudgetScope) {
    if (scope === 'call') return { units: 0n, msat: 0n, unvalued: 0n };
    const host = typeof scope === 'string' ? null : scope.host;
    return taken(now() - (scope === 'hour' ? HOUR : DAY), host);
  }

  /** Why a budget has no room for an amount; null where each has. */
  function overrunOf(host: string, amount: Amount, rate: bigint | null): Overrun {
    for (const { scope, unit, most } of list()) {
      if (!holds(scope, host)) continue;
      const asked = unit === 'usdc' ? amount.units : amount.msat;
      if (unit === 'usdc' && asked === null) return 'a budget in USDC holds, and these sats have no known value';
      const spent = spentOf(scope);
      // Sats that were paid before there was a budget in USDC count at today's rate.
      const earlier = spent.unvalued > 0n && rate !== null ? usdcValue(spent.unvalued, rate) : 0n;
      const before = unit === 'usdc' ? spent.units + earlier : spent.msat;
      if (asked === null || asked === 0n || before + asked <= most) continue;
      const text = unit === 'usdc' ? formatUsdc : formatSats;
      const left = before > most ? 0n : most - before;
      return `${text(asked)} is above what is left of ${scopeText(scope)}: ${text(left)} of ${text(most)}`;
    }
    return null;
  }

  return { list, overrunOf };
}

/** A budget by its name, for people. */
export function scopeText(scope: BudgetScope): string {
  if (typeof scope === 'object') return `the budget of a day for ${scope.host}`;
  return { call: 'the budget of a call', hour: 'the budget of an hour', day: 'the budget of a day' }[scope];
}

function rowOf(row: Record<string, unknown>): Row {
  const text = (name: string): string => String(row[name] ?? '');
  const textOrNull = (name: string): string | null => (row[name] === null ? null : String(row[name]));
  const whole = (name: string): number | null => (row[name] === null ? null : Number(row[name]));
  const amountIn = (name: string): bigint | null => (row[name] === null ? null : BigInt(row[name] as bigint));
  const json = (name: string): unknown => (row[name] === null ? null : JSON.parse(String(row[name])));
  const hasAnswer = row.answer !== null && row.answer_status !== null;
  return {
    id: text('id'),
    call: text('call'),
    host: text('host'),
    way: text('way') as WayName,
    amount: { units: amountIn('units'), msat: amountIn('msat') },
    network: text('network'),
    asset: text('asset'),
    payTo: text('pay_to'),
    reference: text('reference'),
    channel: textOrNull('channel'),
    payer: text('payer'),
    at: Number(row.at),
    expiresAt: whole('expires_at'),
    state: text('state') as Payment['state'],
    plan: json('plan'),
    signed: json('signed') as Row['signed'],
    answer: hasAnswer
      ? {
          status: Number(row.answer_status),
          contentType: textOrNull('answer_type'),
          body: Buffer.from(row.answer as Uint8Array),
        }
      : null,
    transaction: textOrNull('transaction_id'),
    answeredAt: whole('answered_at'),
    note: textOrNull('note'),
  };
}

/** A row without what could present its payment, and without its answer. */
export function shown({
  id,
  call,
  host,
  way,
  amount,
  network,
  payTo,
  reference,
  at,
  expiresAt,
  ...rest
}: Row): Payment {
  const { state, transaction, answeredAt, note } = rest;
  return {
    id,
    call,
    host,
    way,
    amount,
    network,
    payTo,
    reference,
    at,
    expiresAt,
    state,
    transaction,
    answeredAt,
    note,
  };
}
