import type { Bans } from '../../evm/payer-bans.ts';
import { createFlights, type Flight, type Flights } from './flight.ts';
import { createGasModel, type GasModel } from './gas-model.ts';
import type { Job } from './job.ts';
import { createNonces, type Nonces } from './nonces.ts';
import type { Prepared } from './plan.ts';
import type { Wallet } from './wallet.ts';

/** What was taken from the queue together, on its way through the sender. */
export interface Round {
  readonly jobs: readonly Job[];
  /** What waits for the groups to be sent. */
  rest: Omit<Prepared, 'groups'>;
  /**
   * Unused jobs that would not go through: each ends or is sent alone, one after the other, `next` being the first that is not decided.
   * Which of them a transaction in flight may still settle is found out once for all.
   */
  examined: readonly { readonly job: Job; readonly isPending: boolean }[];
  next: number;
}

/** Transactions that are late, and how far the machine is with them. */
export interface Resend {
  readonly late: readonly Flight[];
  /** How many transactions of the relayer the chain has mined. */
  mined: number;
  /** Those that neither ended nor were given back, the next one to be priced, and those that were replaced. */
  stuck: readonly Flight[];
  next: number;
  readonly replaced: Flight[];
  /** How many were given back. */
  lost: number;
}

/** What goes on once doubtful jobs are sorted. */
export type After =
  | 'reopen'
  | 'expire'
  | 'examine'
  | 'refused'
  | 'lost'
  | { readonly replace: Flight; readonly helps: boolean };

/** Doubtful jobs on their way to one of two lists: unused, or unresolved. Those that the logs tell of end on the way. */
export interface Sorting {
  readonly after: After;
  unused: readonly Job[];
  /** Used, or unreadable: looked up in the logs, in this order, `next` being the first that was not asked for. */
  toLookUp: readonly Job[];
  next: number;
  /** How many lookups are under way. */
  asked: number;
}

/** What the machine is given once. */
export interface Settings {
  readonly usdc: `0x${string}`;
  /** While a transaction is in flight, the queue waits at the most this long for company. */
  readonly gatherMs: number;
  /** Receipts are asked for at least this often while something is in flight. */
  readonly pollMs: number;
}

/** Everything the relayer knows. `step` in machine.ts is its only writer. */
export interface State {
  readonly settings: Settings;
  /** Jobs that have not ended, in the order in which they came. */
  readonly open: Set<Job>;
  readonly queue: Job[];
  /** The one sender: idle, waiting for company, in a round, or pausing after a round that failed. */
  sender: 'idle' | 'window' | 'round' | 'pause';
  /** The sender's round; null outside of one. */
  round: Round | null;
  /** Who follows transactions in flight: idle while there are none, waiting for a head or the next poll, or looking. */
  watch: 'idle' | 'waiting' | 'looking';
  /** Whether a head was reported during the look: then the next look comes at once. */
  headSeen: boolean;
  resend: Resend | null;
  readonly flights: Flights;
  readonly nonces: Nonces;
  readonly gas: GasModel;
  readonly bans: Bans;
  stopping: boolean;
}

interface StateOptions extends Settings {
  /** Signs without asking anybody: the same call always becomes the same transaction. */
  readonly wallet: Pick<Wallet, 'sign'>;
  /** How much of a block one transaction may take. */
  readonly blockSharePercent: number;
}

/** Nothing is known, open or in flight. */
export function createState({ usdc, gatherMs, pollMs, wallet, blockSharePercent }: StateOptions): State {
  const nonces = createNonces();
  const gas = createGasModel(blockSharePercent);
  return {
    ...{ settings: { usdc, gatherMs, pollMs }, open: new Set(), queue: [], bans: new Map(), nonces, gas },
    ...{ sender: 'idle', round: null, watch: 'idle', headSeen: false, resend: null, stopping: false },
    flights: createFlights({ usdc, wallet, nonces, gas }),
  };
}
