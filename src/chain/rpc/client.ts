import { UpstreamFailed } from '../../errors.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import type { Allowance } from './allowance.ts';
import { chainBusy, isChainBusy, LOOK_MS, untilAllowed } from './allowed.ts';
import { type AnswerError, judgeError, ProviderFailure } from './answers.ts';
import type { RpcCall } from './call.ts';
import type { ChainLog } from './log.ts';
import { createProvider } from './provider.ts';
import { PATIENCE_MS, type Rank } from './rank.ts';
import { createRoster, type Member, type Roster } from './roster.ts';

/** What a node answered to one call of a batch. */
export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcError };

/** `signal` ends the call with its own reason; no provider is blamed. */
export interface RpcOptions {
  readonly signal?: AbortSignal;
  /**
   * Judges the answers to at most 100 calls together: a reason refuses them, and the next provider is asked for all of them.
   * The refused provider is held back once another one's answers were accepted: where all are refused alike, none of them is to blame.
   */
  readonly refuse?: (outcomes: readonly RpcOutcome[]) => string | null;
  /** Told before each HTTP request that the call costs, so that a caller with a budget can keep it. */
  readonly onRequest?: () => void;
  /** What the call is for; `sale` by default. It decides which calls are answered while the providers limit us. */
  readonly rank?: Rank;
}

/**
 * The node understood and said no (a revert, an unknown method): asking another provider would not help.
 * `code` and `data` are the node's own.
 */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
    this.data = data;
  }
}

/**
 * JSON-RPC over the configured providers, tried in order, each with the time-out and only after its chain id was found right.
 * Failing over: transport errors, time-outs, HTTP other than 200, rate limits, a method or block that the provider lacks, answers that are no JSON-RPC.
 * `request` throws RpcError for what every node would refuse; when no provider answers, both throw UpstreamFailed (502).
 * A provider that limits us is asked within its allowance (`allowance.ts`). When that is used up, ranks `admit` and `free` throw Unavailable
 * (503, `chain_busy`) at once. `sale` and `collect` throw it after 2 s. `settle` asks every provider after 3 s, allowed or not, and throws it if
 * all refuse.
 * A raw transaction may thus be sent more than once: "already known" may mean that our own first sending arrived.
 */
export interface ChainClient {
  readonly chainId: number;
  /** Scheme and host of the first provider, for `source.url`: keys live in paths. */
  readonly publicUrl: string;
  request<T>(method: string, params: readonly unknown[], options?: RpcOptions): Promise<T>;
  /** Resolves when the providers' allowance lets a request of this rank go; rejects with the signal's reason. */
  ready(rank: Rank, signal?: AbortSignal): Promise<void>;
  /** Requests a second that the providers are believed to take together. Infinite while the limit of one of them is not known. */
  requestsPerSecond(): number;
  /** One HTTP request, one outcome for each call, in order. */
  batch(calls: readonly RpcCall[], options?: RpcOptions): Promise<RpcOutcome[]>;
  /**
   * Hands the same calls to every provider, for what must arrive rather than be answered: a transaction that one of them keeps to itself.
   * Resolves when all have been asked; what they say and whether they answer is not told.
   */
  everywhere(calls: readonly RpcCall[], options?: RpcOptions): Promise<void>;
}

/** Where the chain is read, and how long one provider may take. */
export interface ChainClientOptions {
  /** In the order in which they are tried; at least one. */
  readonly rpcUrls: readonly string[];
  readonly chainId: number;
  /** When given, a provider with another block 0 is excluded like one of another chain; one that has pruned it passes. */
  readonly genesisHash?: `0x${string}` | undefined;
  /** For each provider, from the start of a request to the last byte of its answer. */
  readonly timeoutMs: number;
  readonly log?: ChainLog;
  readonly clock?: Clock;
}

/** A client with its connections. */
export interface OpenChainClient extends ChainClient {
  /** Each provider's allowance, in the order of their URLs: for requests that go to one of them past this client. */
  readonly allowances: readonly Allowance[];
  /** Throws unless a provider serves the chain. */
  check(): Promise<void>;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** Nodes refuse longer batches with -32600 (Arc's node: "batch size exceeds limit of 100"). */
const MAX_BATCH = 100;
/** The message of a failure whose only cause is a provider's limit (`provider.ts`, `answers.ts`). */
const RATE_LIMITED = 'rate limited';
/** JSON-RPC 2.0; Arc's public nodes answer it with "method not supported". */
const METHOD_NOT_FOUND = -32601;

/**
 * Opens the client; nothing is sent before the first call.
 * One provider's trouble is hidden from callers as long as another answers, because an upstream failure is a sale lost.
 */
export function createChainClient(options: ChainClientOptions): OpenChainClient {
  const { chainId, timeoutMs, log = SILENT, clock = systemClock } = options;
  const providers = options.rpcUrls.map((url) => createProvider(url, timeoutMs));
  const [first] = providers;
  if (first === undefined) throw new Error('a chain client needs at least one RPC URL');
  const roster = createRoster(providers, { chainId, genesisHash: options.genesisHash }, clock, log);
  const askInOrder = createAsk(roster, clock);

  return {
    chainId,
    publicUrl: first.origin,
    allowances: roster.members.map(({ allowance }) => allowance),
    async request<T>(method: string, params: readonly unknown[], rpc: RpcOptions = {}): Promise<T> {
      const [outcome] = await askInOrder([{ method, params }], rpc);
      if (outcome === undefined) throw new UpstreamFailed('chain', 'no answer');
      if ('error' in outcome) throw outcome.error;
      return outcome.result as T;
    },
    async batch(calls, rpc = {}) {
      if (calls.length === 0) return [];
      if (calls.length <= MAX_BATCH) return askInOrder(calls, rpc);
      const parts = Array.from({ length: Math.ceil(calls.length / MAX_BATCH) }, (_, part) =>
        askInOrder(calls.slice(part * MAX_BATCH, (part + 1) * MAX_BATCH), rpc),
      );
      return (await Promise.all(parts)).flat();
    },
    ready: (rank, signal) => untilAllowed(roster, rank, clock, Number.POSITIVE_INFINITY, signal).then(() => {}),
    requestsPerSecond: () => roster.inOrder().reduce((sum, { allowance }) => sum + allowance.rate(), 0),
    async everywhere(calls, { signal } = {}) {
      await Promise.allSettled(roster.inOrder().map((member) => roster.call(member, calls, signal)));
    },
    async check() {
      if (!(await roster.check())) throw new UpstreamFailed('chain', `no provider answers for chain ${chainId}`);
    },
    async close() {
      await Promise.all(providers.map((provider) => provider.close()));
    },
  };
}

const SILENT: ChainLog = { info: () => undefined, warn: () => undefined };

type Ask = (calls: readonly RpcCall[], rpc: RpcOptions) => Promise<RpcOutcome[]>;

/**
 * Asks one provider after another, each only for what none before it has answered:
 * 1. the call waits for its rank's allowance, at most PATIENCE_MS. Without it `settle` goes on, and every other rank throws `chain_busy`. A call
 *    that met only limits starts again here with what is still open;
 * 2. an answer that every honest node would give stands;
 * 3. a call refused by a limit, or by a node that lacks the method or the block, goes to the next provider;
 * 4. a provider that fails is asked nothing more, all its calls go to the next;
 * 5. answers that the caller refuses as a whole are forgotten, and the next provider is asked for all of them;
 * 6. with no provider left: if every provider answered and refused the open calls, the last refusal is their result; if all were limited,
 *    `chain_busy`; else UpstreamFailed.
 */
function createAsk(roster: Roster, clock: Clock): Ask {
  return async (calls, rpc) => {
    const { rank = 'sale', signal } = rpc;
    const until = clock.nowMs() + PATIENCE_MS[rank];
    const round: Round = {
      settled: new Array(calls.length),
      open: calls.map((call, at) => ({ call, at })),
      reasons: new Set(),
      isLastTry: false,
    };
    for (;;) {
      const isAllowed = await untilAllowed(roster, rank, clock, until - clock.nowMs(), signal);
      if (!isAllowed && rank !== 'settle') throw chainBusy();
      round.isLastTry = clock.nowMs() >= until;
      try {
        return await askAll(roster, calls, round, rpc);
      } catch (error) {
        if (!isChainBusy(error) || round.isLastTry) throw error;
        await clock.sleep(LOOK_MS, signal);
      }
    }
  };
}

/** Rules 2 to 6, once. Throws `chain_busy` when a provider was skipped for its allowance. */
async function askAll(roster: Roster, calls: readonly RpcCall[], round: Round, rpc: RpcOptions): Promise<RpcOutcome[]> {
  const refused: { member: Member; reason: string }[] = [];
  round.reasons.clear();
  const members = roster.inOrder();
  const asked = askable(members, round.isLastTry && rpc.rank === 'settle');
  for (const member of asked) {
    await askMember(roster, member, round, rpc);
    if (round.open.length > 0) continue;
    const reason = rpc.refuse?.(round.settled) ?? null;
    if (reason === null) {
      for (const earlier of refused) roster.failed(earlier.member, new ProviderFailure('malformed', earlier.reason));
      return round.settled;
    }
    round.reasons.add(reason);
    refused.push({ member, reason });
    round.open = calls.map((call, at) => ({ call, at }));
  }
  rpc.signal?.throwIfAborted();
  if (asked.length < members.length) throw chainBusy();
  return unanswered(round, rpc);
}

/** The providers with a free request, in order. With `mustNotFail` the others follow. */
function askable(members: readonly Member[], mustNotFail: boolean): readonly Member[] {
  const ready = members.filter(({ allowance }) => allowance.free() >= 1);
  if (!mustNotFail) return ready;
  return [...ready, ...members.filter((member) => !ready.includes(member))];
}

/** Rule 6. */
function unanswered({ settled, open, reasons }: Round, { refuse }: RpcOptions): RpcOutcome[] {
  if (reasons.size === 0 && open.every(({ at }) => settled[at] !== undefined)) {
    const reason = refuse?.(settled) ?? null;
    if (reason === null) return settled;
    reasons.add(reason);
  }
  if (reasons.size === 1 && reasons.has(RATE_LIMITED)) throw chainBusy();
  throw new UpstreamFailed('chain', `no provider answered (${[...reasons].join('; ') || 'none serves this chain'})`);
}

/** What is answered so far, what is still open, and why. */
interface Round {
  readonly settled: RpcOutcome[];
  open: { call: RpcCall; at: number }[];
  readonly reasons: Set<string>;
  /** Whether the wait is over. A settlement then also asks providers without a free request. */
  isLastTry: boolean;
}

/** Rules 2 to 4: asks one provider for what is open, without the methods that it is known to lack. */
async function askMember(roster: Roster, member: Member, round: Round, { signal, onRequest }: RpcOptions) {
  const asked = round.open.filter(({ call }) => !roster.lacks(member, call.method));
  if (asked.length === 0) return;
  const questions = asked.map(({ call }) => call);
  onRequest?.();
  const answers = await roster.call(member, questions, signal).catch((error: unknown) => {
    if (!(error instanceof ProviderFailure)) throw error;
    round.reasons.add(error.message);
  });
  if (answers === undefined) return;
  const done = new Set<number>();
  let isLimited = false;
  asked.forEach(({ call, at }, position) => {
    const answer = answers[position];
    if (answer === undefined) return;
    round.settled[at] = 'error' in answer ? { error: toRpcError(answer.error) } : answer;
    const verdict = 'error' in answer ? judgeError(answer.error) : 'final';
    if (verdict === 'final') done.add(at);
    if (verdict === 'rateLimited') isLimited = true;
    if ('error' in answer && answer.error.code === METHOD_NOT_FOUND) roster.noteLacking(member, call.method);
  });
  round.open = round.open.filter(({ at }) => !done.has(at));
  if (!isLimited) return;
  round.reasons.add(RATE_LIMITED);
  roster.failed(member, new ProviderFailure('rateLimited', RATE_LIMITED));
}

function toRpcError({ code, message, data }: AnswerError): RpcError {
  return new RpcError(code, message, data);
}
