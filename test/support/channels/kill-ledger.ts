import { bytesToHex } from '../../../src/lib/hex.ts';

/** Rows of a query on a ledger, whichever database holds it, also while no process serves it. */
export type Ask = (sql: string) => Promise<Record<string, unknown>[]>;

/** A sale of a channel in the ledger. `transaction` in hex: of a deposit that was sent. */
export interface SaleLeft {
  readonly state: string;
  readonly transaction: `0x${string}` | null;
  readonly reply: string | null;
}
/** The sale that charged the channel up to exactly `max`, or is about to; null without one. */
export type Sales = (channelId: Uint8Array, max: bigint) => SaleLeft | null;

/** A claim or a refund that has not ended. */
export interface OpenOperation {
  readonly kind: 'claim' | 'refund';
  readonly transaction: `0x${string}` | null;
}

/** What the ledger says about a channel. Amounts in base units. `sold`: the sum of its settled sales. */
export interface ChannelLeft {
  readonly charged: bigint;
  readonly sold: bigint;
  readonly writtenOff: bigint;
  readonly signature: Uint8Array | null;
}

const hex = (bytes: unknown): `0x${string}` | null => (bytes ? bytesToHex(bytes as Uint8Array) : null);
const keyOf = (channelId: Uint8Array, max: unknown): string => `${bytesToHex(channelId)}:${max}`;

/** The sales of channels that were reserved since a time, in Unix milliseconds. */
export async function readSales(ask: Ask, sinceMs: number): Promise<Sales> {
  const rows = await ask(`
    SELECT channel_id, voucher_max, state, transaction_hash, body FROM usdc_payments LEFT JOIN usdc_replies ON payment_id = id
     WHERE channel_id IS NOT NULL AND state <> 'failed' AND reserved_at >= ${sinceMs}`);
  const sales = new Map(
    rows.map(({ channel_id, voucher_max, state, transaction_hash, body }) => [
      keyOf(channel_id as Uint8Array, voucher_max),
      {
        state: String(state),
        transaction: hex(transaction_hash),
        reply: body ? Buffer.from(body as Uint8Array).toString('utf8') : null,
      },
    ]),
  );
  return (channelId, max) => sales.get(keyOf(channelId, max)) ?? null;
}

/** All channels, by their ids in hex. */
export async function readChannels(ask: Ask): Promise<ReadonlyMap<string, ChannelLeft>> {
  const rows = await ask(`
    SELECT id, charged, written_off, signature, coalesce(sold, 0) AS sold
      FROM channels LEFT JOIN (SELECT channel_id, sum(charged) AS sold FROM usdc_payments WHERE state = 'settled' GROUP BY channel_id) AS sales
        ON channel_id = id`);
  return new Map(
    rows.map(({ id, charged, sold, written_off, signature }) => [
      bytesToHex(id as Uint8Array),
      {
        charged: BigInt(String(charged)),
        sold: BigInt(String(sold)),
        writtenOff: BigInt(String(written_off)),
        signature: signature as Uint8Array | null,
      },
    ]),
  );
}

/** The claims and refunds that have not ended. */
export async function readOpenOperations(ask: Ask): Promise<OpenOperation[]> {
  const rows = await ask("SELECT kind, transaction_hash FROM channel_operations WHERE state = 'open'");
  return rows.map(({ kind, transaction_hash }) => ({
    kind: kind as OpenOperation['kind'],
    transaction: hex(transaction_hash),
  }));
}

/** How many sales have not ended. */
export async function countOpenSales(ask: Ask): Promise<number> {
  return (await ask("SELECT id FROM usdc_payments WHERE state NOT IN ('settled', 'failed')")).length;
}
