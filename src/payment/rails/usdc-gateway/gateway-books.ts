import type { ChainClient } from '../../../chain/rpc/client.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { Payment } from '../../../store/ports/sales.ts';
import type { GatewayTransferStore } from '../../../store/ports/transfers.ts';
import { topicOf } from '../../evm/abi-words.ts';
import { readReceipts } from '../../evm/books.ts';
import type { Receipt } from '../../evm/evidence.ts';
import { AUTHORIZATION_USED, TRANSFER } from '../../evm/token.ts';
import type { Ledger } from '../../ledger.ts';
import type { BookVerdict, RailBooks } from '../../settler.ts';

/** Payments of one batch that are added up. */
const MOST_IN_A_BATCH = 10_000;
/** Hex digits of one word with its prefix: an amount and nothing else. */
const ONE_WORD = 66;

interface GatewayBooksOptions {
  readonly chain: Pick<ChainClient, 'batch'>;
  readonly transfers: Pick<GatewayTransferStore, 'get' | 'paymentsIn'>;
  readonly ledger: Pick<Ledger, 'get'>;
  /** In lower case. */
  readonly usdc: string;
  readonly wallet: string;
}

/**
 * The books of payments over the Gateway. A row has no transaction of ours. Its batch has one, which many rows share.
 * 1. No batch is known yet: unread, and looked at again. The Gateway failed the transfer after it had accepted it: the
 *    row's amount is missing.
 * 2. The batch's transaction credits the recipient with the sum of all its rows. Where it credits less, the rows beyond
 *    it are missing: it covers them in the order of their ids. So no two rows share a credit.
 * 3. The batch's receipt counts as two providers give it. One that they do not give alike is unread.
 * 4. The Gateway does not publish its events. A batch that succeeded and in which no credit can be read is unread.
 */
export function createGatewayBooks({ chain, transfers, ledger, usdc, wallet }: GatewayBooksOptions): RailBooks {
  function compareBatched(row: Payment, owed: bigint, receipt: Receipt): BookVerdict {
    if (receipt.status !== '0x1') return missing(row.amount, 'the transaction of its batch reverted');
    const credit = creditIn(receipt, row.payTo, { usdc, wallet });
    if (credit === null) return { kind: 'unread', detail: 'no credit can be read in its batch' };
    const lacks = owed - credit;
    if (lacks <= 0n) return { kind: 'shown' };
    return missing(least(lacks, row.amount), 'its batch credits less than its rows');
  }

  return {
    async compare(rows) {
      const known = await Promise.all(rows.map(({ id }) => transfers.get(id)));
      const batchOf = (at: number): Uint8Array | null => {
        const transfer = known[at];
        return transfer && !transfer.isOpen ? transfer.transaction : null;
      };
      const receiptOf = await readReceipts(
        chain,
        rows.flatMap((_, at) => batchOf(at) ?? []),
        0,
      );
      const owedOf = new Map<string, ReadonlyMap<string, bigint>>();
      const verdicts: BookVerdict[] = [];
      for (const [at, row] of rows.entries()) {
        const [transfer, batch] = [known[at], batchOf(at)];
        const receipt = batch ? receiptOf(batch) : 'none';
        if (!transfer) verdicts.push(missing(row.amount, 'the ledger has no transfer of it'));
        else if (transfer.status === 'failed' && !transfer.isOpen)
          verdicts.push(missing(row.amount, 'the Gateway failed its transfer'));
        else if (!batch) verdicts.push({ kind: 'unread', detail: 'its batch is not known yet' });
        else if (receipt === 'none' || receipt === 'unread') verdicts.push(UNREAD);
        else {
          const key = bytesToHex(batch);
          const owed = owedOf.get(key) ?? (await owedIn(batch, { transfers, ledger }));
          owedOf.set(key, owed);
          verdicts.push(compareBatched(row, owed.get(row.id) ?? row.amount, receipt));
        }
      }
      return verdicts;
    },
  };
}

/** What a batch owes to each recipient up to each of its rows, that row included. */
async function owedIn(
  batch: Uint8Array,
  { transfers, ledger }: Pick<GatewayBooksOptions, 'transfers' | 'ledger'>,
): Promise<ReadonlyMap<string, bigint>> {
  const sums = new Map<string, bigint>();
  const owed = new Map<string, bigint>();
  for (const id of await transfers.paymentsIn(batch, MOST_IN_A_BATCH)) {
    const row = await ledger.get(id);
    if (!row) continue;
    const payTo = bytesToHex(row.payTo);
    sums.set(payTo, (sums.get(payTo) ?? 0n) + row.amount);
    owed.set(id, sums.get(payTo) ?? 0n);
  }
  return owed;
}

const UNREAD: BookVerdict = { kind: 'unread', detail: 'the receipt of its batch cannot be read' };
const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const missing = (amount: bigint, detail: string): BookVerdict => ({ kind: 'missing', amount, detail });

/**
 * What a batch credits to an address: the token's transfers to it, or events of the Gateway's wallet that name it last
 * and hold one amount, whichever is more. Transfers by an authorization of the token are left out, because they pay
 * rows of their own. Null without any.
 */
function creditIn(
  { logs }: Receipt,
  payTo: Uint8Array,
  { usdc, wallet }: Pick<GatewayBooksOptions, 'usdc' | 'wallet'>,
): bigint | null {
  const to = topicOf(payTo);
  const credits: Record<string, bigint> = {};
  for (const { address, topics, data } of logs) {
    const emitter = address.toLowerCase();
    if (emitter === usdc && topics[0] === AUTHORIZATION_USED) break;
    const isTransfer = emitter === usdc && topics[0] === TRANSFER;
    if ((isTransfer || emitter === wallet) && topics.length > 1 && topics.at(-1) === to && data.length === ONE_WORD)
      credits[emitter] = (credits[emitter] ?? 0n) + BigInt(data);
  }
  const sums = Object.values(credits);
  return sums.sort(ascending).at(-1) ?? null;
}

const ascending = (one: bigint, other: bigint): number => (one < other ? -1 : Number(one > other));
