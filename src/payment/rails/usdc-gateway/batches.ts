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

/** Transfers looked at in one round: the Gateway's limits are not told. */
const ROUND = 20;
/** How often batches are sent is not told either: looks begin close together and end hourly. */
const FIRST_AGAIN_MS = 5000;
const LONGEST_AGAIN_MS = 3_600_000;
/** About a month of hourly looks. */
const MAX_CHECKS = 750;
const HASH = /^0x[0-9a-f]{64}$/i;

/**
 * Learns the transactions of the batches in which accepted payments went to the chain, some transfers each round, one round at a time.
 * A transfer that the Gateway gives up after it was accepted has cost us an answer: that is an error for an operator to read.
 */
export function createGatewayBatches({ client, store, clock, log }: GatewayBatchesOptions) {
  let working: Promise<void> | null = null;

  async function look(transfer: DueTransfer): Promise<TransferNote> {
    const id = transactionText(transfer.transferId) ?? '';
    const again = nextCheck(transfer.checks, clock.nowMs());
    const told = await client.transfer(id).catch((error) => {
      log.warn({ err: error, payment: transfer.paymentId }, 'a Gateway transfer could not be looked up');
      return null;
    });
    if (told?.id.toLowerCase() !== id) return { status: null, transaction: null, nextCheckAt: again };
    const { status, txHash } = told;
    const transaction = txHash && HASH.test(txHash) ? hexToBytes(txHash) : null;
    if (status === 'failed')
      log.error({ payment: transfer.paymentId, transfer: id }, 'the Gateway gave up a transfer that it had accepted');
    // The hash of a batch that is not confirmed may still be replaced by another one's.
    const final = status === 'failed' || (transaction !== null && status !== 'received' && status !== 'batched');
    return { status, transaction, nextCheckAt: final ? null : again };
  }

  async function round(): Promise<void> {
    for (const transfer of await store.due(clock.nowMs(), ROUND)) {
      await store.note(transfer.paymentId, await look(transfer));
    }
  }

  return {
    /** Whoever comes while a round runs waits for the same; it rejects when the store cannot be read. */
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
