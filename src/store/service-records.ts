import { createHash } from 'node:crypto';
import type { LedgerDatabase, Plan } from './db/port.ts';
import { first, least, make, onlyRow, sql } from './db/sql.ts';
import {
  type CatalogueCopy,
  type CatalogueStore,
  type DueTransfer,
  type GatewayTransferStore,
  type KnownTransfer,
  NOTHING_SPENT,
  type ProviderNote,
  type ProviderNotes,
  type RefusalStore,
  type RefusedCalls,
  type RelayerSpendingStore,
  type SelfTestRun,
  type SelfTestStore,
  type ServiceKeyStore,
  type Spending,
  type TransferNote,
} from './ports/stores.ts';

// What the service remembers beside payments: its keys, its self-tests, what the relayer spent, the third party's
// catalogue, RPC providers that contradicted others, refused calls, and transfers of the Gateway. Each write is on disk
// when it resolves, and all instances see the same.

/** Deletes the rows of a table whose time is earlier. */
const forget = (table: string, time: string) => sql<{ before: number }>(`DELETE FROM ${table} WHERE ${time} < @before`);

// --- Keys

const ADD_KEY = sql<{ name: string; fresh: Uint8Array }>(
  'INSERT INTO service_keys (name, value) VALUES (@name, @fresh) ON CONFLICT DO NOTHING',
);
const KEY = sql<{ name: string }, { value: Uint8Array }>('SELECT value FROM service_keys WHERE name = @name');

export function createServiceKeys(db: LedgerDatabase): ServiceKeyStore {
  return {
    keep: async (name, fresh) => {
      await make(db, 'others', [ADD_KEY({ name, fresh })]);
      return (await onlyRow(db, KEY({ name }))).value;
    },
  };
}

// --- Self-tests

const RUN = `SELECT at, ok, latency_ms AS "latencyMs", transaction_hash AS "transaction",
  not_charged AS "notCharged", reason FROM self_tests`;
const ADD_RUN = sql<SelfTestRun>(`
  INSERT INTO self_tests (id, at, ok, latency_ms, transaction_hash, not_charged, reason)
  SELECT coalesce(max(id), 0) + 1, @at::bigint, @ok::boolean, @latencyMs::bigint, @transaction::bytea,
         @notCharged::boolean, @reason::text FROM self_tests`);
const FORGET_RUNS = forget('self_tests', 'at');
const NEWEST_RUNS = sql<{ limit: number }, SelfTestRun>(`${RUN} ORDER BY at DESC, id DESC LIMIT @limit`);
const NEWEST_CHECKED = sql<object, SelfTestRun>(
  `${RUN} WHERE not_charged IS NOT NULL ORDER BY at DESC, id DESC LIMIT 1`,
);
const COUNT_RUNS = sql<{ sinceMs: number }, { runs: number; good: number }>(
  'SELECT count(*) AS runs, count(*) FILTER (WHERE ok) AS good FROM self_tests WHERE at >= @sinceMs',
);

export function createSelfTests(db: LedgerDatabase): SelfTestStore {
  return {
    record: async (run, keepFromMs) => {
      await make(db, 'others', [ADD_RUN(run), FORGET_RUNS({ before: keepFromMs })]);
    },
    recent: async (limit) => [...(await db.read(NEWEST_RUNS({ limit })))],
    lastChecked: () => first(db, NEWEST_CHECKED({})),
    countSince: async (sinceMs) => {
      const { runs, good } = await onlyRow(db, COUNT_RUNS({ sinceMs }));
      return { runs, ok: good };
    },
  };
}

// --- What the relayer spent

const SPENT_ON = sql<{ day: string }, Spending>(
  'SELECT wei, failed_wei AS "failedWei", gas, transactions, payments FROM relayer_spending WHERE day = @day',
);
const PUT_SPENDING = sql<Spending & { day: string }>(`
  INSERT INTO relayer_spending (day, wei, failed_wei, gas, transactions, payments)
  VALUES (@day, @wei, @failedWei, @gas, @transactions, @payments)
  ON CONFLICT (day) DO UPDATE
     SET wei = excluded.wei, failed_wei = excluded.failed_wei, gas = excluded.gas,
         transactions = excluded.transactions, payments = excluded.payments`);

export function createRelayerSpending(db: LedgerDatabase): RelayerSpendingStore {
  // SQLite holds wei as text, so they are added up here, under the turn.
  function* add(day: string, more: Spending): Plan<void> {
    const { rows } = yield SPENT_ON({ day });
    const before = (rows[0] as Spending | undefined) ?? NOTHING_SPENT;
    yield PUT_SPENDING({
      day,
      wei: before.wei + more.wei,
      failedWei: before.failedWei + more.failedWei,
      gas: before.gas + more.gas,
      transactions: before.transactions + more.transactions,
      payments: before.payments + more.payments,
    });
  }

  return {
    add: (day, spending) => db.decide('others', () => add(day, spending)),
    spentOn: async (day) => (await first(db, SPENT_ON({ day }))) ?? NOTHING_SPENT,
  };
}

// --- The third party's catalogue

const COPY = sql<object, CatalogueCopy>('SELECT read_at AS "readAt", entries FROM catalogue_copy');
const COPIED_AT = sql<object, { readAt: number }>('SELECT read_at AS "readAt" FROM catalogue_copy');
// The text has megabytes. Where it is the one that is there, only its time is written.
const TOUCH_COPY = sql<{ readAt: number; digest: Uint8Array }>(
  'UPDATE catalogue_copy SET read_at = @readAt WHERE digest = @digest',
);
const PUT_COPY = sql<CatalogueCopy & { digest: Uint8Array }>(`
  INSERT INTO catalogue_copy (id, read_at, digest, entries) VALUES (1, @readAt, @digest, @entries)
  ON CONFLICT (id) DO UPDATE
     SET read_at = excluded.read_at, digest = excluded.digest, entries = excluded.entries
   WHERE catalogue_copy.digest <> excluded.digest`);

export function createCatalogueCopy(db: LedgerDatabase): CatalogueStore {
  return {
    load: () => first(db, COPY({})),
    readAt: async () => (await first(db, COPIED_AT({})))?.readAt ?? null,
    save: async ({ readAt, entries }) => {
      const digest = createHash('sha256').update(entries).digest();
      await make(db, 'others', [TOUCH_COPY({ readAt, digest }), PUT_COPY({ readAt, entries, digest })]);
    },
  };
}

// --- RPC providers that contradicted others

const NOTES = sql<{ nowMs: number }, ProviderNote>(`
  SELECT host, kind, question, said, others, noted_at AS "sinceMs", expires_at AS "untilMs" FROM provider_notes
   WHERE expires_at > @nowMs ORDER BY noted_at, host, kind, question`);
const EXPIRE_NOTES = forget('provider_notes', 'expires_at');
const PUT_NOTE = sql<ProviderNote>(`
  INSERT INTO provider_notes (host, kind, question, said, others, noted_at, expires_at)
  VALUES (@host, @kind, @question, @said, @others, @sinceMs, @untilMs)
  ON CONFLICT (host, kind, question) DO UPDATE
     SET said = excluded.said, others = excluded.others, expires_at = excluded.expires_at,
         noted_at = ${least('provider_notes.noted_at', 'excluded.noted_at')}`);
const END_DISPUTES = sql<{ question: string }>(
  "DELETE FROM provider_notes WHERE kind = 'disputed' AND question = @question",
);
const FORGET_HOST = sql<{ host: string }>('DELETE FROM provider_notes WHERE host = @host');

export function createProviderNotes(db: LedgerDatabase): ProviderNotes {
  return {
    list: async (nowMs) => [...(await db.read(NOTES({ nowMs })))],
    put: async (note) => {
      await make(db, 'others', [EXPIRE_NOTES({ before: note.sinceMs + 1 }), PUT_NOTE(note)]);
    },
    agree: async (question) => {
      await make(db, 'others', [END_DISPUTES({ question })]);
    },
    trust: (host) => make(db, 'others', [FORGET_HOST({ host })]),
  };
}

// --- Refused calls

const ADD_REFUSED = sql<{ hour: number; code: string; count: number }>(`
  INSERT INTO refused_calls (hour, code, count) VALUES (@hour, @code, @count)
  ON CONFLICT (hour, code) DO UPDATE SET count = refused_calls.count + excluded.count`);
const FORGET_REFUSED = forget('refused_calls', 'hour');
const REFUSED = sql<{ from: number; recent: number }, RefusedCalls>(`
  SELECT code, CAST(sum(count) AS BIGINT) AS count,
         CAST(coalesce(sum(count) FILTER (WHERE hour >= @recent), 0) AS BIGINT) AS "recentCount"
    FROM refused_calls WHERE hour >= @from GROUP BY code ORDER BY count DESC, code`);

export function createRefusals(db: LedgerDatabase): RefusalStore {
  return {
    add: async (hour, counts, keepFromMs) => {
      const added = [...counts].map(([code, count]) => ADD_REFUSED({ hour, code, count }));
      await make(db, 'others', [...added, FORGET_REFUSED({ before: keepFromMs })]);
    },
    since: async (from, recent) => [...(await db.read(REFUSED({ from, recent })))],
  };
}

// --- Transfers of the Gateway. A payment's move to `settled` inserts one in its own transaction.

const DUE = sql<{ now: number; limit: number }, DueTransfer>(`
  SELECT payment_id AS "paymentId", transfer_id AS "transferId", checks FROM gateway_transfers
   WHERE next_check_at <= @now ORDER BY next_check_at LIMIT @limit`);
const NOTE_TRANSFER = sql<TransferNote & { paymentId: string }>(`
  UPDATE gateway_transfers
     SET status = @status, transaction_hash = @transaction, next_check_at = @nextCheckAt, checks = checks + 1
   WHERE payment_id = @paymentId`);
const TRANSFER = sql<{ paymentId: string }, KnownTransfer>(`
  SELECT status, transaction_hash AS "transaction", next_check_at IS NOT NULL AS "isOpen" FROM gateway_transfers
   WHERE payment_id = @paymentId`);
const PAYMENTS_IN = sql<{ transaction: Uint8Array; limit: number }, { id: string }>(`
  SELECT payment_id AS id FROM gateway_transfers WHERE transaction_hash = @transaction
   ORDER BY payment_id LIMIT @limit`);

export function createGatewayTransfers(db: LedgerDatabase): GatewayTransferStore {
  return {
    due: async (now, limit) => [...(await db.read(DUE({ now, limit })))],
    note: async (paymentId, note) => {
      await make(db, 'payments', [NOTE_TRANSFER({ ...note, paymentId })]);
    },
    get: (paymentId) => first(db, TRANSFER({ paymentId })),
    batchOf: async (paymentId) => (await first(db, TRANSFER({ paymentId })))?.transaction ?? null,
    paymentsIn: async (transaction, limit) => (await db.read(PAYMENTS_IN({ transaction, limit }))).map(({ id }) => id),
  };
}
