import { z } from 'zod';
import { nextBaseFee } from '../chain/fees.ts';
import { type PendingState, whatHolds } from '../chain/pending.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { Transaction } from '../chain/transaction.ts';
import { createFirstSeen, type FirstSeen } from '../lib/first-seen.ts';
import { formatGwei } from '../lib/units.ts';
import { atField, decimal, perGasField, showPerGas } from './chain-fields.ts';
import { floorOf, notBelow } from './fee-fields.ts';
import type { Sources } from './sources.ts';

/** Pending transactions whose first ask a process remembers: about 2 MB. */
const REMEMBERED = 10_000;

/** What a transaction waits for. */
export const pendingField = z
  .strictObject({
    firstSeenAt: atField(
      'When this process of the service was first asked about it while it was pending, since its start. It was sent earlier',
    ),
    heldBy: z
      .array(z.enum(['nonceUsed', 'nonceGap', 'feeBelowFloor', 'feeTooLow', 'balanceTooLow']))
      .nullable()
      .meta({
        description:
          'What keeps it out of the next block: another transaction has its nonce, so it is never mined; lower nonces of the sender come first; its maxFeePerGas is below the chain’s lowest fee, or below the next base fee; the sender cannot pay value and gas. Empty: nothing that the chain shows. null: not known, see unknownReason',
      }),
    unknownReason: z.string().nullable().meta({ description: 'Why what keeps it is not known; null when it is' }),
    accountNonce: z.int().nonnegative().nullable().meta({
      description: 'Nonce of the next transaction of the sender to be mined; the difference to its own is the gap',
    }),
    nextBaseFee: perGasField('Base fee of the next block').nullable(),
    floorGwei: decimal('In gwei')
      .nullable()
      .meta({ description: 'The lowest base fee of the chain, in gwei; null while unknown' }),
    asOfBlock: z.int().nonnegative().nullable().meta({ description: 'The block at which this was read' }),
  })
  .nullable()
  .meta({ description: 'While it is pending: since when it was seen, and what keeps it. null once it is mined' });

/** One memory for each client, so that two chains in one process never mix. */
const memories = new WeakMap<ChainClient, FirstSeen>();

/** When the process was first asked about a pending transaction, in Unix seconds. */
function firstSeenAt({ chain, clock }: Pick<Sources, 'chain' | 'clock'>, hash: string): number {
  const memory = memories.get(chain) ?? createFirstSeen(REMEMBERED);
  memories.set(chain, memory);
  return Math.floor(memory(hash, clock.nowMs()) / 1000);
}

/** Shows what a transaction waits for; `state` is null when the chain did not say it. */
export function showPending(
  transaction: Transaction,
  state: PendingState | null,
  sources: Pick<Sources, 'chain' | 'clock' | 'reads' | 'collected'>,
): z.output<typeof pendingField> {
  const seen = { firstSeenAt: firstSeenAt(sources, transaction.hash) };
  if (state === null) return { ...seen, ...UNKNOWN };
  const { accountNonce, newest } = state;
  const floor = floorOf(sources, newest.at);
  const next = notBelow(nextBaseFee(newest), floor).wei;
  return {
    ...seen,
    heldBy: whatHolds(transaction, state, { nextBaseFee: next, floor }),
    unknownReason: null,
    accountNonce,
    nextBaseFee: showPerGas(next),
    floorGwei: floor === null ? null : formatGwei(floor),
    asOfBlock: newest.number,
  };
}

const UNKNOWN = {
  heldBy: null,
  unknownReason: 'The provider that knows the transaction did not say what its sender and the next block are at.',
  accountNonce: null,
  nextBaseFee: null,
  floorGwei: null,
  asOfBlock: null,
};
