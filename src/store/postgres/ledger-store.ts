import { fixed, type Pools, type Statement, statement } from '../db/connections.ts';
import type { WriteQueue } from '../db/write-queue.ts';
import { OPEN } from '../payment-columns.ts';
import type { LedgerStore, Payment, PaymentKey, PaymentState } from '../ports/payments.ts';
import type { WaitingBytes } from '../waiting-bytes.ts';
import { ledgerWrites, PURGE_CHUNK } from './ledger-writes.ts';
import { createPaymentRows, SELECT_PAYMENT } from './payment-rows.ts';

const FIND = statement<PaymentKey>(
  `${SELECT_PAYMENT} WHERE network = @network AND contract = @contract AND payer = @payer AND nonce = @nonce`,
);
const GET = statement<{ id: string }>(`${SELECT_PAYMENT} WHERE id = @id`);
const BY_HASH = statement<{ hash: Uint8Array; limit: number }>(
  `${SELECT_PAYMENT} WHERE nonce = @hash UNION ${SELECT_PAYMENT} WHERE transaction_hash = @hash ORDER BY id LIMIT @limit`,
);
const BY_IDENTIFIER = statement<{ identifierHash: Uint8Array }>(
  `${SELECT_PAYMENT} WHERE identifier_hash = @identifierHash AND state <> 'failed'`,
);
const OPEN_BEFORE = statement<
  Pick<PaymentKey, 'network' | 'payer'> & { contracts: readonly Uint8Array[]; id: string }
>(`
  SELECT coalesce(sum(amount), 0) AS total FROM usdc_payments
   WHERE network = @network AND contract = ANY(@contracts::bytea[]) AND payer = @payer AND id <> @id AND state IN ${OPEN}
     AND place < (SELECT place FROM usdc_payments WHERE id = @id)`);
const REPLY_BYTES = fixed('SELECT coalesce(sum(length(body)), 0) AS bytes FROM usdc_replies');
const BY_STATE = statement<{ states: readonly PaymentState[]; limit: number; after: string }>(
  `${SELECT_PAYMENT} WHERE state = ANY(@states::text[]) AND id > @after ORDER BY id LIMIT @limit`,
);
const HAS_SETTLED = statement<Omit<PaymentKey, 'nonce'>>(`
  SELECT EXISTS (SELECT 1 FROM usdc_payments WHERE network = @network AND contract = @contract AND payer = @payer
                    AND state = 'settled') AS settled`);
const LEFT_BEHIND = statement<{ living: readonly string[]; limit: number; after: string }>(
  `${SELECT_PAYMENT} WHERE state IN ${OPEN} AND boot_id <> ALL(@living::text[]) AND id > @after ORDER BY id LIMIT @limit`,
);
const COUNT = fixed('SELECT state, count(*) AS count FROM usdc_payments GROUP BY state');

interface LedgerStoreOptions {
  readonly pools: Pools;
  readonly queue: WriteQueue;
  /** Counts the replies that wait to be written by all stores of this database. */
  readonly waiting: WaitingBytes;
  /** Closes the whole ledger, as the payments' store does on SQLite. */
  close(): Promise<void>;
  ping(): Promise<void>;
}

/**
 * The ledger's store on PostgreSQL. Writes of one event loop turn share a transaction. Each has its own outcome, as if the calls had come one after
 * the other. Reads see committed data.
 */
export function createLedgerStore({ pools, queue, waiting, close, ping }: LedgerStoreOptions): LedgerStore {
  const all = createPaymentRows(pools);
  const one = async (query: Statement): Promise<Payment | null> => (await all(query))[0] ?? null;

  return {
    find: (key) => one(FIND(key)),
    get: (id) => one(GET({ id })),
    findByHash: (hash, limit) => all(BY_HASH({ hash, limit })),
    findByIdentifier: (identifierHash) => one(BY_IDENTIFIER({ identifierHash })),
    reserve: (payment, maxOpen, reusableReason) => queue.write(ledgerWrites.reserve(payment, maxOpen, reusableReason)),
    move: (id, from, to, change, reply, fencingToken) => {
      const bytes = reply && reply !== 'drop' && 'store' in reply ? reply.store.length : 0;
      const write = () => queue.write(ledgerWrites.move(id, from, to, change, reply, fencingToken ?? null));
      return waiting.during(bytes, write);
    },
    noteBroadcast: (entries, where, fencingToken) =>
      queue.write(ledgerWrites.noteBroadcast(entries, where, fencingToken ?? null)),
    release: (id, from) => queue.write(ledgerWrites.release(id, from)),
    openBefore: async ({ network, contract, payer }, id, contracts = [contract]) => {
      const [row] = await pools.read<{ total: bigint }>(OPEN_BEFORE({ network, contracts, payer, id }));
      return row?.total ?? 0n;
    },
    takeReply: (id, max, now) => queue.write(ledgerWrites.takeReply(id, max, now)),
    delivered: (id, now, keepUntil) => queue.write(ledgerWrites.delivered(id, now, keepUntil)),
    trimReplies: (from, to, bytes) => queue.write(ledgerWrites.trimReplies(from, to, bytes)),
    purgeReplies: async (now) => {
      for (let purged = 0; ; ) {
        const more = await queue.write(ledgerWrites.purgeReplies(now));
        purged += more;
        if (more < PURGE_CHUNK) return purged;
      }
    },
    replyBytes: async () => {
      // A reply that is written while the sum is read is counted twice; otherwise it could be missed.
      const bytes = waiting.read();
      const [row] = await pools.read<{ bytes: number }>(REPLY_BYTES);
      return (row?.bytes ?? 0) + bytes;
    },
    listByState: (states, limit, after = '') => all(BY_STATE({ states, limit, after })),
    hasSettled: async ({ network, contract, payer }) => {
      const [row] = await pools.read<{ settled: boolean }>(HAS_SETTLED({ network, contract, payer }));
      return row?.settled ?? false;
    },
    listLeftBehind: (living, limit, after = '') => all(LEFT_BEHIND({ living, limit, after })),
    ping,
    countByState: () => countByState(pools),
    close,
  };
}

async function countByState(pools: Pools): Promise<Record<PaymentState, number>> {
  const counts: Record<PaymentState, number> = { reserved: 0, settling: 0, unknown: 0, settled: 0, failed: 0 };
  for (const { state, count } of await pools.read<{ state: PaymentState; count: number }>(COUNT)) {
    counts[state] = count;
  }
  return counts;
}
