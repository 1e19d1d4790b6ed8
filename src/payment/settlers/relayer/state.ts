import type { Bans } from '../../usdc/payer-reads.ts';
import { createFlights, type Flight, type Flights } from './flight.ts';
import { createGasModel, type GasModel } from './gas-model.ts';
import type { Job, OperationJob } from './job.ts';
import { createNonces, type Nonces } from './nonces.ts';
import type { Prepared } from './plan.ts';
import type { Wallet } from './wallet.ts';

/** What was taken from the queues together and is in the sender: payments, or one operation. */
export interface Round {
  readonly jobs: readonly Job[];
  /** The operation of a round without payments; null in a round of payments. */
  readonly operation: OperationJob | null;
  /** Jobs that wait until the groups are sent. */
  rest: Omit<Prepared, 'groups'>;
  /**
   * Unused jobs whose simulation failed. One after the other ends or is sent alone; `next` is the first undecided one. `isPending`, found once for
   * all of them: a transaction in flight may still settle the job.
   */
  examined: readonly { readonly job: Job; readonly isPending: boolean }[];
  next: number;
}

/** Late transactions, and the machine's progress with them. */
export interface Resend {
  readonly late: readonly Flight[];
  /** The number of the relayer's transactions that the chain has mined. */
  mined: number;
  /** Late flights that neither ended nor were given back, the index of the next one to price, and the replaced ones. */
  stuck: readonly Flight[];
  next: number;
  readonly replaced: Flight[];
  /** How many flights were given back. */
  lost: number;
}

/** What follows once doubtful jobs are sorted. */
export type After =
  | 'reopen'
  | 'expire'
  | 'examine'
  | 'refused'
  | 'lost'
  | { readonly replace: Flight; readonly helps: boolean };

/** Sorts doubtful jobs into two lists: unused, or unresolved. A job whose end the logs show ends during the sorting. */
export interface Sorting {
  readonly after: After;
  unused: readonly Job[];
  /** Jobs that are used or unreadable. They are looked up in the logs in this order; `next` is the first without a request. */
  toLookUp: readonly Job[];
  next: number;
  /** How many lookups are under way. */
  asked: number;
}

/** Settings of the machine that do not change. */
export interface Settings {
  readonly usdc: `0x${string}`;
  /** The batch window, in milliseconds: while a transaction is in flight, a job waits at most this long for others. */
  readonly batchWindowMs: number;
  /** Milliseconds between two requests for receipts while a transaction is in flight. */
  readonly pollMs: number;
}

/** Everything that the relayer knows. `step` in machine.ts is its only writer. */
export interface State {
  readonly settings: Settings;
  /** Jobs that have not ended, in the order in which they came. */
  readonly open: Set<Job>;
  readonly queue: Job[];
  /** How many open jobs have a call of their own. */
  openCalls: number;
  /** Operations that have not ended, and those of them that wait for the sender. */
  readonly openOperations: Set<OperationJob>;
  readonly operations: OperationJob[];
  /** The sender: idle, in the batch window, in a round, or in a pause after a failed round. */
  sender: 'idle' | 'window' | 'round' | 'pause';
  /** The sender's round; null outside of one. */
  round: Round | null;
  /** The watch over transactions in flight: idle while there are none, waiting for a head or the next poll, or looking for receipts. */
  watch: 'idle' | 'waiting' | 'looking';
  /** Whether a head was reported during the look. Then the next look comes at once. */
  headSeen: boolean;
  resend: Resend | null;
  readonly flights: Flights;
  readonly nonces: Nonces;
  readonly gas: GasModel;
  readonly bans: Bans;
  stopping: boolean;
}

interface StateOptions extends Settings {
  /** Signs locally. The same call always gives the same transaction. */
  readonly wallet: Pick<Wallet, 'sign'>;
  /** The part of a block that one transaction may take, in percent. */
  readonly blockSharePercent: number;
}

/** Makes the state at start: nothing is known, open or in flight. */
export function createState({ usdc, batchWindowMs, pollMs, wallet, blockSharePercent }: StateOptions): State {
  const nonces = createNonces();
  const gas = createGasModel(blockSharePercent);
  return {
    ...{ settings: { usdc, batchWindowMs, pollMs }, open: new Set(), queue: [], bans: new Map(), nonces, gas },
    ...{ openCalls: 0, openOperations: new Set(), operations: [] },
    ...{ sender: 'idle', round: null, watch: 'idle', headSeen: false, resend: null, stopping: false },
    flights: createFlights({ usdc, wallet, nonces, gas }),
  };
}
