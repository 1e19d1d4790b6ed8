import type { RpcOutcome } from '../../chain/rpc/wire.ts';
import type { Found, OperationDone, OperationFailed, OperationOutcome, Outcome } from '../settler.ts';
import type { ChainCheck } from '../usdc/checks.ts';
import { type Bans, createBans } from '../usdc/payer-reads.ts';
import { createGasModel, type GasModel, type MinedCost, type Prices, type RailCost } from './gas.ts';
import {
  createFlights,
  createNonces,
  type Flight,
  type Flights,
  type Job,
  type Nonces,
  type OperationJob,
  type Transaction,
  type Unconfirmed,
  type Wallet,
} from './transactions.ts';

// The types of the machine: its state, which `step` alone writes, the effects that it asks for, and its events.

/** What the sender took from the queues together: payments, or one operation. */
interface Round {
  readonly jobs: readonly Job[];
  readonly operation: OperationJob | null;
  rest: Omit<Prepared, 'groups'>;
  /** Unused jobs whose simulation failed, decided up to `next`. `isPending`: one in flight may still settle the job. */
  examined: readonly { readonly job: Job; readonly isPending: boolean }[];
  next: number;
}

/** Late transactions, and the machine's progress with them. */
interface Resend {
  readonly late: readonly Flight[];
  mined: number;
  /** Late flights that neither ended nor were given back, and the index of the next one to price. */
  stuck: readonly Flight[];
  next: number;
  readonly replaced: Flight[];
  lost: number;
}

export type After =
  | 'reopen'
  | 'expire'
  | 'examine'
  | 'refused'
  | 'lost'
  | { readonly replace: Flight; readonly helps: boolean };

/** Sorts doubtful jobs into unused and unresolved. A job whose end the logs show ends meanwhile. */
export interface Sorting {
  readonly after: After;
  unused: readonly Job[];
  /** Used or unreadable jobs, in the order of their lookups; `next` is the first without one. */
  toLookUp: readonly Job[];
  next: number;
  asked: number;
}

interface Settings {
  readonly usdc: `0x${string}`;
  /** Milliseconds that a job waits for others at the most while a transaction is in flight (the batch window). */
  readonly gatherMs: number;
  /** Milliseconds between two requests for receipts while a transaction is in flight. */
  readonly pollMs: number;
}

export interface State {
  readonly settings: Settings;
  /** Jobs that have not ended, oldest first. */
  readonly open: Set<Job>;
  readonly queue: Job[];
  /** Open jobs with a call of their own. */
  openCalls: number;
  /** Operations that have not ended, and those that wait for the sender. */
  readonly openOperations: Set<OperationJob>;
  readonly operations: OperationJob[];
  sender: 'idle' | 'window' | 'round' | 'pause';
  round: Round | null;
  /** The watch over flights: idle without any, waiting for a head or the next poll, or looking for receipts. */
  watch: 'idle' | 'waiting' | 'looking';
  /** A head came during the look. Then the next look comes at once. */
  headSeen: boolean;
  resend: Resend | null;
  readonly flights: Flights;
  readonly nonces: Nonces;
  readonly gas: GasModel;
  readonly bans: Bans;
  stopping: boolean;
}

export interface StateOptions extends Settings {
  readonly wallet: Pick<Wallet, 'sign'>;
  /** The part of a block that one transaction may take, in percent. */
  readonly blockSharePercent: number;
}

export function createState({ usdc, gatherMs, pollMs, wallet, blockSharePercent }: StateOptions): State {
  const nonces = createNonces();
  const gas = createGasModel(blockSharePercent);
  return {
    settings: { usdc, gatherMs, pollMs },
    open: new Set(),
    queue: [],
    bans: createBans(),
    nonces,
    gas,
    openCalls: 0,
    openOperations: new Set(),
    operations: [],
    sender: 'idle',
    round: null,
    watch: 'idle',
    headSeen: false,
    resend: null,
    stopping: false,
    flights: createFlights({ usdc, wallet, nonces, gas }),
  };
}

export interface Moment {
  readonly nowMs: number;
  readonly prices: Prices;
  /** Whether failures have used up today's budget. Then each payment is simulated before it is sent. */
  readonly isCareful: boolean;
}

/** The two parts that work step by step: the sender's round, and the resend of late flights. */
export type Procedure = 'round' | 'resend';

export type Timer =
  | { readonly name: 'window' }
  | { readonly name: 'poll' }
  | { readonly name: 'pause' }
  | { readonly name: 'refused'; readonly flights: readonly Flight[] }
  | { readonly name: 'queue'; readonly jobs: readonly Job[] }
  | { readonly name: 'operation'; readonly job: OperationJob; readonly why: Unconfirmed | null };

export interface Sent {
  readonly flight: Flight;
  readonly transaction: Transaction;
}

/** Effects with an answer, which is one event of the same kind or one `failed`. */
interface Asks {
  /** 0 ms: the event loop's next turn. */
  wait: { effect: { ms: number; timer: Timer }; answer: null };
  countTransactions: { effect: { for: Procedure }; answer: number };
  /** For a round: prices that are recent enough. For a resend: fresh ones. They come with the answer's moment. */
  readFees: { effect: { for: Procedure }; answer: null };
  tryOut: { effect: { plan: Plan }; answer: Trial };
  tryOperation: { effect: { job: OperationJob; gasPrice: bigint }; answer: RpcOutcome };
  /** What the chain shows; null for no end. */
  lookUpOperation: {
    effect: { job: OperationJob; for: Unconfirmed };
    answer: OperationDone | OperationFailed | null | 'unreadable';
  };
  /** Writes the hashes to disk. Answers the ids of payments and operations that still await their end. */
  note: { effect: { flights: readonly Flight[]; for: Procedure }; answer: ReadonlySet<string> };
  send: { effect: { flights: readonly Flight[]; raws: readonly string[] }; answer: readonly RpcOutcome[] };
  fetchReceipts: {
    effect: { sent: readonly Sent[]; for: 'look' | 'late' | { refused: readonly Flight[] } };
    answer: readonly RpcOutcome[];
  };
  /** Null for a payer that could not be read. */
  readPayers: {
    effect: { jobs: readonly Job[]; for: Sorting | { minedAt: number } };
    answer: readonly (Reading | null)[];
  };
  /** What the logs show up to a block, or to the head. `unknown` when they cannot be read. */
  lookUp: { effect: { job: Job; atBlock: number | null; for: Sorting | 'alone' | 'examination' }; answer: Found };
  /** At the end of a block. Null when it cannot be read. */
  readBalance: { effect: { job: Job; atBlock: number }; answer: bigint | null };
  tryToken: { effect: { suspect: Job | null }; answer: boolean };
}

export type AskOf<K extends keyof Asks> = { readonly kind: K } & Readonly<Asks[K]['effect']>;
export type Ask = { [K in keyof Asks]: AskOf<K> }[keyof Asks];

type Command =
  | { readonly kind: 'resendEverywhere'; readonly raws: readonly string[] }
  | { readonly kind: 'listen' | 'stopListening' }
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

/** One event while it is handled, and the effects so far. */
export interface Turn {
  readonly state: State;
  readonly now: Moment;
  readonly effects: Effect[];
}

export type Reading = Pick<Awaited<ReturnType<ChainCheck['read']>>, 'used' | 'hasCode'>;

export interface RoundLimits {
  readonly gas: bigint;
  /** The transaction's price of gas, in wei. The simulation uses it too: a contract could detect another one. */
  readonly gasPrice: bigint;
  readonly isCareful: boolean;
  /** Most transfers of a transaction while `waiting` wait, and how many of them a payment with a call counts for. */
  most(waiting: number): number;
  readonly callWeight: number;
}

export interface Plan {
  readonly limits: Pick<RoundLimits, 'gas' | 'gasPrice'>;
  /** The jobs whose payers are read, and the groups of them that are simulated. */
  readonly free: readonly Job[];
  readonly trialGroups: readonly Job[][];
  /** Sent without a read or a simulation, each alone. */
  readonly alone: readonly Job[];
  /** Not sent: the chain cannot show their state. */
  readonly unresolved: readonly Job[];
}

/** No reading: the payer's read failed, or one provider alone refuses its payment. A node may refuse to simulate. */
export interface Trial {
  readonly readings: ReadonlyMap<Job, Reading>;
  readonly simulated: readonly RpcOutcome[];
}

/** What may be sent now, one transaction a group, and what must first be looked up or tried again. */
export interface Prepared {
  readonly groups: readonly Job[][];
  /** The chain shows them as used, would not execute them, or cannot show them. */
  readonly doubtful: readonly Job[];
  /** Without a result. They are tried again, in smaller groups if their batch failed as a whole. */
  readonly again: readonly Job[];
}
