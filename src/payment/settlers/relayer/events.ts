import type { RpcOutcome } from '../../../chain/rpc/wire.ts';
import type { OperationDone, OperationFailed, OperationOutcome } from '../../operation.ts';
import type { Found, Outcome } from '../../settler.ts';
import type { Prices } from './fees.ts';
import type { Flight, Transaction } from './flight.ts';
import type { Doubt, Job, OperationJob } from './job.ts';
import type { MinedCost, RailCost } from './mined-cost.ts';
import type { Plan, Reading, Trial } from './plan.ts';
import type { Sorting, State } from './state.ts';

/** What the machine knows at an event besides the event itself. */
export interface Moment {
  readonly nowMs: number;
  /** From the last read of the newest block. */
  readonly prices: Prices;
  /** Whether failures have used up today's budget, so that each payment is simulated before it is sent. */
  readonly isCareful: boolean;
}

/** The two parts that work step by step: the sender's round, and the resend of late transactions. */
export type Procedure = 'round' | 'resend';

/** What a wait is for. */
export type Timer =
  | { readonly name: 'window' }
  | { readonly name: 'poll' }
  | { readonly name: 'pause' }
  | { readonly name: 'refused'; readonly flights: readonly Flight[] }
  | { readonly name: 'queue'; readonly jobs: readonly Job[] }
  | { readonly name: 'operation'; readonly job: OperationJob; readonly why: Doubt | null };

/** A transaction whose receipt is asked for, and its flight. */
export interface Sent {
  readonly flight: Flight;
  readonly transaction: Transaction;
}

/** Effects with an answer: one event of the same kind, or one `failed`. */
interface Asks {
  /** 0 ms is the event loop's next turn. */
  wait: { effect: { ms: number; timer: Timer }; answer: null };
  /** The number of the relayer's mined transactions. */
  countTransactions: { effect: { for: Procedure }; answer: number };
  /** For a round: prices that are recent enough. For a resend: fresh prices. The prices come with the answer's moment. */
  readFees: { effect: { for: Procedure }; answer: null };
  /** Reads the payers and simulates their groups. */
  tryOut: { effect: { plan: Plan }; answer: Trial };
  /** Simulates an operation. */
  tryOperation: { effect: { job: OperationJob; gasPrice: bigint }; answer: RpcOutcome };
  /** What the chain shows of an operation. Null when it shows no end. */
  lookUpOperation: {
    effect: { job: OperationJob; for: Doubt };
    answer: OperationDone | OperationFailed | null | 'unreadable';
  };
  /** Writes the hashes to disk. The answer is the ids of the payments and operations that still await their end. */
  note: { effect: { flights: readonly Flight[]; for: Procedure }; answer: ReadonlySet<string> };
  send: { effect: { flights: readonly Flight[]; raws: readonly string[] }; answer: readonly RpcOutcome[] };
  fetchReceipts: {
    effect: { sent: readonly Sent[]; for: 'look' | 'late' | { refused: readonly Flight[] } };
    answer: readonly RpcOutcome[];
  };
  /** Null where a payer could not be read. */
  readPayers: {
    effect: { jobs: readonly Job[]; for: Sorting | { minedAt: number } };
    answer: readonly (Reading | null)[];
  };
  /** What the logs show, up to a block or the head. `unknown` when they cannot be read. */
  lookUp: { effect: { job: Job; atBlock: number | null; for: Sorting | 'alone' | 'examination' }; answer: Found };
  /** The payer's balance at the end of a block. Null when it cannot be read. */
  readBalance: { effect: { job: Job; atBlock: number }; answer: bigint | null };
  /** Whether the token lets payments through. */
  tryToken: { effect: { suspect: Job | null }; answer: boolean };
}

type AskOf<K extends keyof Asks> = { readonly kind: K } & Readonly<Asks[K]['effect']>;
export type Ask = { [K in keyof Asks]: AskOf<K> }[keyof Asks];

/** Effects without an answer. */
export type Command =
  | { readonly kind: 'resendEverywhere'; readonly raws: readonly string[] }
  | { readonly kind: 'listen' | 'stopListening' }
  /** Ends a wait now. */
  | { readonly kind: 'wake'; readonly timer: 'window' | 'poll' }
  | { readonly kind: 'end'; readonly job: Job; readonly outcome: Outcome }
  | { readonly kind: 'endOperation'; readonly job: OperationJob; readonly outcome: OperationOutcome }
  | { readonly kind: 'report'; readonly cost: MinedCost; readonly rails: readonly RailCost[] }
  | { readonly kind: 'warn'; readonly detail: object; readonly message: string };

export type Effect = Ask | Command;

export type Answered = {
  [K in keyof Asks]: { readonly kind: K; readonly effect: AskOf<K>; readonly answer: Asks[K]['answer'] };
}[keyof Asks];

export type Event =
  | { readonly kind: 'submitted'; readonly jobs: readonly Job[] }
  | { readonly kind: 'operated'; readonly job: OperationJob }
  | { readonly kind: 'head' | 'stopped' }
  | { readonly kind: 'failed'; readonly effect: Ask; readonly error: unknown }
  | Answered;

/** One event while it is handled: the state to change, and the effects so far. */
export interface Turn {
  readonly state: State;
  readonly now: Moment;
  readonly effects: Effect[];
}
