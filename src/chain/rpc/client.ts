import { UpstreamFailed } from '../../errors.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import type { Allowance } from './allowance.ts';
import { chainBusy, createRankQueue, isChainBusy, type RankQueue, RECHECK_MS } from './allowed.ts';
import { type AnswerError, classifyError, METHOD_NOT_FOUND, ProviderFailure } from './answers.ts';
import type { RpcCall } from './call.ts';
import type { ChainLog } from './log.ts';
import { createProvider } from './provider.ts';
import { createProviderPool, type PooledProvider, type ProviderPool } from './provider-pool.ts';
import { type Rank, WAIT_MS } from './rank.ts';

/** What a node answered to one call of a batch. */
export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcError };

/** `signal` ends the call with its own reason, which counts against no provider. */
export interface RpcOptions {
  readonly signal?: AbortSignal;
  /**
   * Checks the answers to at most 100 calls together. When it returns a reason, they are refused, and the next provider is asked for all of them.
   * The refused provider is held back once another provider's answers were accepted. When all are refused, none is held back.
   */
  readonly refuse?: (outcomes: readonly RpcOutcome[]) => string | null;
  /**
   * All outcomes of a batch of at most 100 calls come from one provider, by one request. Where it refuses one call because it is limited, or because it
   * lacks the method or the block, the next provider is asked for all of them. By default the next one is asked only for what was refused.
   */
  readonly fromOneProvider?: boolean;
  /** Called before each HTTP request of the call, so that a caller can keep a request budget. */
  readonly onRequest?: () => void;
  /** What the call is for; `sale` by default. While the providers limit us, calls of more important ranks go first. */
  readonly rank?: Rank;
}

/**
 * The node understood the call and refused it (a revert, an unknown method). Asking another provider would not help.
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
 * JSON-RPC over the configured providers, tried in order. Each has the time-out, and is used only after its chain id was checked.
 * The next provider is asked after a transport error, a time-out, HTTP other than 200, a rate limit, an answer that is not JSON-RPC,
 * or when the provider lacks the method or the block.
 * `request` throws RpcError for a call that every node would refuse. `request` and `batch` throw UpstreamFailed (502) when no provider answers.
 * A provider that limits us is asked within its allowance (`allowance.ts`). When that is used up, ranks `admit` and `free` throw Unavailable
 * (503, `chain_busy`) at once. `sale`, `collect` and `offer` throw it after 2 s. `settle` asks every provider after 3 s, allowed or not, and throws it if
 * all refuse.
 * One call may reach several providers. So a raw transaction may be sent more than once, and "already known" may mean that our own first request
 * arrived.
 */
export interface ChainClient {
  readonly chainId: number;
  /** Scheme and host of the first provider, for `source.url`. The path is left out, because it may hold a key. */
  readonly publicUrl: string;
  request<T>(method: string, params: readonly unknown[], options?: RpcOptions): Promise<T>;
  /** Resolves when the providers' allowance permits a request of this rank. Rejects with the signal's reason. */
  ready(rank: Rank, signal?: AbortSignal): Promise<void>;
  /** Estimated requests a second that all providers together accept. Infinite while the limit of one of them is unknown. */
  requestsPerSecond(): number;
  /** One outcome for each call, in order. A provider is asked by one HTTP request for each 100 calls. */
  batch(calls: readonly RpcCall[], options?: RpcOptions): Promise<RpcOutcome[]>;
  /**
   * Sends the same calls to every provider, for a transaction that one provider may not pass on to the network.
   * Resolves when all have been asked. It reports neither their answers nor their failures.
   */
  everywhere(calls: readonly RpcCall[], options?: RpcOptions): Promise<void>;
}

/** Where the chain is read, and how long one provider may take. */
export interface ChainClientOptions {
  /** In the order in which they are tried; at least one. */
  readonly rpcUrls: readonly string[];
  readonly chainId: number;
  /** When given, a provider with another block 0 is excluded, like one of another chain. A provider that has pruned block 0 is accepted. */
  readonly genesisHash?: `0x${string}` | undefined;
  /** For each provider, from the start of a request to the last byte of its answer. */
  readonly timeoutMs: number;
  readonly log?: ChainLog;
  readonly clock?: Clock;
}

/** A client with its connections. */
export interface OpenChainClient extends ChainClient {
  /** Each provider's allowance, in the order of their URLs, for requests that are sent to one provider without this client. */
  readonly allowances: readonly Allowance[];
  /** Rejects unless at least one provider serves the chain. */
  check(): Promise<void>;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** Nodes refuse longer batches with -32600 (Arc's node: "batch size exceeds limit of 100"). */
const MAX_BATCH = 100;
/** The message of a failure whose only cause is a provider's limit (`provider.ts`, `answers.ts`). */
const RATE_LIMITED = 'rate limited';
/** How often, and after how many milliseconds, calls are repeated for nodes that were behind. Arc's block time is 500 ms. */
const BEHIND_REPEATS = 2;
const BEHIND_MS = 250;

/**
 * Opens the client. It sends nothing before the first call.
 * A caller gets an error only when no provider answers, because an error of a provider would otherwise end a sale.
 */
export function createChainClient(options: ChainClientOptions): OpenChainClient {
  const { chainId, timeoutMs, log = SILENT, clock = systemClock } = options;
  const providers = options.rpcUrls.map((url) => createProvider(url, timeoutMs));
  const [first] = providers;
  if (first === undefined) throw new Error('a chain client needs at least one RPC URL');
  const pool = createProviderPool(providers, { chainId, genesisHash: options.genesisHash }, clock, log);
  const queue = createRankQueue(pool, clock);
  const askInOrder = createAsk(pool, queue, clock);

  return {
    chainId,
    publicUrl: first.origin,
    allowances: pool.entries.map(({ allowance }) => allowance),
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
    ready: (rank, signal) => queue.untilAllowed(rank, Number.POSITIVE_INFINITY, signal).then(() => {}),
    requestsPerSecond: () => pool.inOrder().reduce((sum, { allowance }) => sum + allowance.rate(), 0),
    async everywhere(calls, { signal } = {}) {
      await Promise.allSettled(pool.inOrder().map((entry) => pool.call(entry, calls, signal)));
    },
    async check() {
      if (!(await pool.check())) throw new UpstreamFailed('chain', `no provider answers for chain ${chainId}`);
    },
    async close() {
      await Promise.all(providers.map((provider) => provider.close()));
    },
  };
}

const SILENT: ChainLog = { info: () => undefined, warn: () => undefined };

type Ask = (calls: readonly RpcCall[], rpc: RpcOptions) => Promise<RpcOutcome[]>;

/**
 * Asks one provider after another, each only for the calls that no earlier provider has answered; `fromOneProvider`: for all calls, until one provider
 * has answered them all.
 * 1. the call waits for its rank's allowance, at most WAIT_MS. Then `settle` goes on without it, and every other rank throws `chain_busy`. A call
 *    that only met rate limits starts again here with its unanswered calls;
 * 2. an answer that every correct node would give is final;
 * 3. a call refused by a limit, or by a node that lacks the method or the block, goes to the next provider;
 * 4. when a provider fails, all its calls go to the next;
 * 5. when the caller refuses the answers, all of them are dropped, and the next provider is asked for all calls;
 * 6. when no provider is left: if every provider answered and refused the open calls, the last refusal is their result, but "method not found" only
 *    where all say so; if all were limited, `chain_busy`; else UpstreamFailed;
 * 7. when the result of an open call is "request beyond head block", the open calls start again at rule 1, at most twice: the nodes behind one URL may
 *    differ by a block. Ranks that do not wait start only once, and so do callers that refuse such a result.
 */
function createAsk(pool: ProviderPool, { untilAllowed }: RankQueue, clock: Clock): Ask {
  return async (calls, rpc) => {
    const { rank = 'sale', signal } = rpc;
    const until = clock.nowMs() + WAIT_MS[rank];
    const round: Round = {
      settled: new Array(calls.length),
      open: calls.map((call, at) => ({ call, at })),
      reasons: new Set(),
      isLastTry: false,
    };
    for (let repeats = 0; ; ) {
      const isAllowed = await untilAllowed(rank, until - clock.nowMs(), signal);
      if (!isAllowed && rank !== 'settle') throw chainBusy();
      round.isLastTry = clock.nowMs() >= until;
      try {
        const outcomes = await askAll(pool, calls, round, rpc);
        const mayRepeat = repeats < BEHIND_REPEATS && clock.nowMs() + BEHIND_MS < until;
        if (!mayRepeat || !round.open.some(({ at }) => isBehind(outcomes[at]))) return outcomes;
        repeats += 1;
        await clock.sleep(BEHIND_MS, signal);
      } catch (error) {
        if (!isChainBusy(error) || round.isLastTry) throw error;
        await clock.sleep(RECHECK_MS, signal);
      }
    }
  };
}

/** Rules 2 to 6, once. Throws `chain_busy` when a provider was skipped for its allowance. */
async function askAll(
  pool: ProviderPool,
  calls: readonly RpcCall[],
  round: Round,
  rpc: RpcOptions,
): Promise<RpcOutcome[]> {
  const refused: { entry: PooledProvider; reason: string }[] = [];
  round.reasons.clear();
  const entries = pool.inOrder();
  const asked = askable(entries, round.isLastTry && rpc.rank === 'settle');
  for (const entry of asked) {
    await askProvider(pool, entry, round, rpc);
    if (round.open.length > 0) continue;
    const reason = rpc.refuse?.(round.settled) ?? null;
    if (reason === null) {
      for (const earlier of refused) pool.failed(earlier.entry, new ProviderFailure('malformed', earlier.reason));
      return round.settled;
    }
    round.reasons.add(reason);
    refused.push({ entry, reason });
    round.open = calls.map((call, at) => ({ call, at }));
  }
  rpc.signal?.throwIfAborted();
  if (asked.length < entries.length) throw chainBusy();
  return unanswered(round, rpc);
}

function isBehind(outcome: RpcOutcome | undefined): boolean {
  return outcome !== undefined && 'error' in outcome && classifyError(outcome.error) === 'behind';
}

/** The providers whose allowance has a free request, in order. With `mustNotFail` the others come after them. */
function askable(entries: readonly PooledProvider[], mustNotFail: boolean): readonly PooledProvider[] {
  const ready = entries.filter(({ allowance }) => allowance.free() >= 1);
  if (!mustNotFail) return ready;
  return [...ready, ...entries.filter((entry) => !ready.includes(entry))];
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

/** The answers so far, the calls without an answer, and the reasons. */
interface Round {
  readonly settled: RpcOutcome[];
  open: { call: RpcCall; at: number }[];
  readonly reasons: Set<string>;
  /** True when the wait for the allowance is over. A settlement then also asks providers whose allowance is used up. */
  isLastTry: boolean;
}

/** Rules 2 to 4: asks one provider for the open calls. Methods that it is known to lack are left out, unless it must answer all. */
async function askProvider(pool: ProviderPool, entry: PooledProvider, round: Round, rpc: RpcOptions) {
  const { signal, onRequest, fromOneProvider = false } = rpc;
  const asked = fromOneProvider ? round.open : round.open.filter(({ call }) => !pool.lacks(entry, call.method));
  if (asked.length === 0) return;
  const questions = asked.map(({ call }) => call);
  onRequest?.();
  const answers = await pool.call(entry, questions, signal).catch((error: unknown) => {
    if (!(error instanceof ProviderFailure)) throw error;
    round.reasons.add(error.message);
  });
  if (answers === undefined) return;
  const done = new Set<number>();
  let isLimited = false;
  asked.forEach(({ call, at }, position) => {
    const answer = answers[position];
    if (answer === undefined) return;
    const isLacking = 'error' in answer && answer.error.code === METHOD_NOT_FOUND;
    // "Method not found" means that no provider has it. So it does not replace what another refuses for another reason.
    if (fromOneProvider || !isLacking || !isOtherRefusal(round.settled[at]))
      round.settled[at] = 'error' in answer ? { error: toRpcError(answer.error) } : answer;
    const verdict = 'error' in answer ? classifyError(answer.error) : 'final';
    if (verdict === 'final') done.add(at);
    if (verdict === 'rateLimited') isLimited = true;
    if (isLacking) pool.noteLacking(entry, call.method);
  });
  if (!fromOneProvider || done.size === asked.length) round.open = round.open.filter(({ at }) => !done.has(at));
  if (!isLimited) return;
  round.reasons.add(RATE_LIMITED);
  pool.failed(entry, new ProviderFailure('rateLimited', RATE_LIMITED));
}

/** Whether a provider has the method and refuses the call all the same. A limit says nothing of what it has. */
const isOtherRefusal = (outcome: RpcOutcome | undefined): boolean =>
  outcome !== undefined &&
  'error' in outcome &&
  outcome.error.code !== METHOD_NOT_FOUND &&
  classifyError(outcome.error) !== 'rateLimited';

function toRpcError({ code, message, data }: AnswerError): RpcError {
  return new RpcError(code, message, data);
}
