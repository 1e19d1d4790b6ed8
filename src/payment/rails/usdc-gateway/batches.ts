import type { Clock } from '../../../lib/clock.ts';
import { hexToBytes } from '../../../lib/hex.ts';
import type { DueTransfer, GatewayTransferStore, TransferNote } from '../../../store/ports/transfers.ts';
import { transactionText } from '../../transaction-id.ts';
import type { GatewayClient } from './client.ts';

interface GatewayBatchesOptions {
  client: Pick<GatewayClient, 'transfer'>;
  store: Pick<GatewayTransferStore, 'due' | 'note'>;
  clock: Clock;
  log: { warn(detail: object, message: string): void; error(detail: object, message: string): void };
}

/** Transfers looked up in one round. The Gateway does not publish its limits. */
const ROUND = 20;
/** In milliseconds. The Gateway does not publish how often it sends batches. So the first lookups are seconds apart, and later ones an hour. */
const FIRST_AGAIN_MS = 5000;
const LONGEST_AGAIN_MS = 3_600_000;
/** About a month of hourly lookups. */
const MAX_CHECKS = 750;
const HASH = /^0x[0-9a-f]{64}$/i;

/**
 * Finds the transactions of the batches in which accepted payments went to the chain. Each round looks up some transfers; rounds never overlap. A
 * transfer that the Gateway fails after accepting it has cost us an answer, so it is logged as an error.
 */
export function createGatewayBatches({ client, store, clock, log }: GatewayBatchesOptions) {
  let working: Promise<void> | null = null;

  async function lookUp(transfer: DueTransfer): Promise<TransferNote> {
    const id = transactionText(transfer.transferId) ?? '';
    const again = nextCheck(transfer.checks, clock.nowMs());
    const found = await client.transfer(id).catch((error) => {
      log.warn({ err: error, payment: transfer.paymentId }, 'a Gateway transfer could not be looked up');
      return null;
    });
    if (found?.id.toLowerCase() !== id) return { status: null, transaction: null, nextCheckAt: again };
    const { status, txHash } = found;
    const transaction = txHash && HASH.test(txHash) ? hexToBytes(txHash) : null;
    if (status === 'failed')
      log.error({ payment: transfer.paymentId, transfer: id }, 'the Gateway failed a transfer that it had accepted');
    // Until a batch is confirmed, another transaction may replace it, so its hash may change.
    const final = status === 'failed' || (transaction !== null && status !== 'received' && status !== 'batched');
    return { status, transaction, nextCheckAt: final ? null : again };
  }

  async function round(): Promise<void> {
    for (const transfer of await store.due(clock.nowMs(), ROUND)) {
      await store.note(transfer.paymentId, await lookUp(transfer));
    }
  }

  return {
    /** Runs one round. A call during a round waits for that round. Rejects when the store cannot be read. */
    round: (): Promise<void> => {
      working ??= round().finally(() => {
        working = null;
      });
      return working;
    },
  };
}

function nextCheck(checks: number, now: number): number | null {
  return checks >= MAX_CHECKS ? null : now + Math.min(LONGEST_AGAIN_MS, FIRST_AGAIN_MS * 2 ** checks);
}
