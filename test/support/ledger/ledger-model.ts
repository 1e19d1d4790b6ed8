import type { PaymentState } from '../../../src/store/ports/payments.ts';

/** A row with names in place of bytes; its nonce stands for its key. */
export interface ModelRow {
  id: string;
  nonce: string;
  /** Stands for the whole content of the authorization. */
  authorization: string;
  payer: string;
  identifier: string | null;
  state: PaymentState;
  reason: string | null;
  transaction: string | null;
  deliveries: number;
  reply: { body: string; keepUntil: number | null } | null;
}

interface ModelMove {
  readonly reason?: string | null;
  readonly reply?: { readonly store: string } | { readonly keepUntil: number } | 'drop';
}

const isOpen = ({ state }: ModelRow): boolean => state !== 'settled' && state !== 'failed';

/** A model of the ledger's store in a list, without a disk. Its calls run one after the other. */
export function createLedgerModel() {
  let rows: ModelRow[] = [];
  const byId = (id: string, from: readonly PaymentState[]) => {
    const row = rows.find((one) => one.id === id);
    return row && from.includes(row.state) ? row : null;
  };

  return {
    reserve(
      row: Pick<ModelRow, 'id' | 'nonce' | 'authorization' | 'payer' | 'identifier'>,
      maxOpen: number,
      reusable: string | null,
    ) {
      const holder = rows.find(({ nonce }) => nonce === row.nonce);
      const open = rows.filter((one) => one.payer === row.payer && isOpen(one)).length;
      const held = rows.some((one) => row.identifier && one.identifier === row.identifier && one.state !== 'failed');
      if ((maxOpen > 0 && open >= maxOpen) || held) return false;
      if (!holder) {
        rows.push({ ...row, state: 'reserved', reason: null, transaction: null, deliveries: 0, reply: null });
        return true;
      }
      if (holder.state !== 'failed' || reusable === null || holder.reason !== reusable) return false;
      if (holder.authorization !== row.authorization) return false;
      Object.assign(holder, { id: row.id, identifier: row.identifier, state: 'reserved', transaction: null });
      return true;
    },
    move(id: string, from: readonly PaymentState[], to: PaymentState, { reason, reply }: ModelMove): boolean {
      const row = byId(id, from);
      if (!row) return false;
      row.state = to;
      if (reason !== undefined) row.reason = reason;
      if (reply === 'drop') row.reply = null;
      else if (reply && 'store' in reply) row.reply = { body: reply.store, keepUntil: null };
      else if (reply && row.reply) row.reply.keepUntil = reply.keepUntil;
      return true;
    },
    noteBroadcast(entries: readonly { id: string; transaction: string }[], where: readonly PaymentState[]): string[] {
      const noted = entries.filter(({ id, transaction }) => {
        const row = byId(id, where);
        if (row) row.transaction = transaction;
        return row !== null;
      });
      return noted.map(({ id }) => id);
    },
    release(id: string, from: readonly PaymentState[]): boolean {
      const row = byId(id, from);
      if (!row) return false;
      if (row.reason === null) rows = rows.filter((one) => one !== row);
      else Object.assign(row, { state: 'failed', reply: null });
      return true;
    },
    takeReply(id: string, max: number, now: number): string | null {
      const row = byId(id, ['settled']);
      if (!row?.reply || (row.reply.keepUntil ?? 0) <= now || row.deliveries >= max) return null;
      row.deliveries++;
      return row.reply.body;
    },
    purgeReplies(now: number): number {
      const over = rows.filter(({ reply }) => reply?.keepUntil && reply.keepUntil <= now);
      for (const row of over) row.reply = null;
      return over.length;
    },
    /** Removes a row, which no call of the store does. */
    forget(id: string): void {
      rows = rows.filter((row) => row.id !== id);
    },
    rows: (): readonly ModelRow[] => rows,
    holderOf: (identifier: string) =>
      rows.find((row) => row.identifier === identifier && row.state !== 'failed')?.id ?? null,
    replyBytes: (): number => rows.reduce((sum, { reply }) => sum + (reply?.body.length ?? 0), 0),
  };
}
