import { UpstreamFailed } from '../errors.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { type AnswerError, judgeError, ProviderFailure } from './answers.ts';
import { createProvider } from './provider.ts';
import { createRoster, type Roster } from './roster.ts';

/** One JSON-RPC call. */
export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What a node answered to one call of a batch. */
export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcError };

/** `signal` ends the call with its own reason; no provider is blamed. */
export interface RpcOptions {
  readonly signal?: AbortSignal;
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
 * A raw transaction may thus be sent more than once: "already known" may mean that our own first sending arrived.
 */
export interface ChainClient {
  readonly chainId: number;
  /** Scheme and host of the first provider, for `source.url`: keys live in paths. */
  readonly publicUrl: string;
  request<T>(method: string, params: readonly unknown[], options?: RpcOptions): Promise<T>;
  /** One HTTP request, one outcome for each call, in order. */
  batch(calls: readonly RpcCall[], options?: RpcOptions): Promise<RpcOutcome[]>;
  /**
   * Hands the same calls to every provider, for what must arrive rather than be answered: a transaction that one of them keeps to itself.
   * Resolves when all have been asked; what they say and whether they answer is not told.
   */
  everywhere(calls: readonly RpcCall[], options?: RpcOptions): Promise<void>;
}

/** The two levels of a pino-like logger that the client needs. */
export interface ChainLog {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
}

/** Where the chain is read, and how long one provider may take. */
export interface ChainClientOptions {
  /** In the order in which they are tried; at least one. */
  readonly rpcUrls: readonly string[];
  readonly chainId: number;
  /** For each provider, from the start of a request to the last byte of its answer. */
  readonly timeoutMs: number;
  readonly log?: ChainLog;
  readonly clock?: Clock;
}

/** A client with its connections: `check` throws unless a provider serves the chain, `close` ends every connection. */
export type OpenChainClient = ChainClient & { close(): Promise<void>; check(): Promise<void> };

/** Nodes refuse longer batches with -32600 (Arc's node: "batch size exceeds limit of 100"). */
const MAX_BATCH = 100;

/**
 * Opens the client; nothing is sent before the first call.
 * One provider's trouble is hidden from callers as long as another answers, because an upstream failure is a sale lost.
 */
export function createChainClient(options: ChainClientOptions): OpenChainClient {
  const { chainId, timeoutMs, log = SILENT, clock = systemClock } = options;
  const providers = options.rpcUrls.map((url) => createProvider(url, timeoutMs));
  const [first] = providers;
  if (first === undefined) throw new Error('a chain client needs at least one RPC URL');
  const roster = createRoster(providers, chainId, clock, log);

  return {
    chainId,
    publicUrl: first.origin,
    async request<T>(method: string, params: readonly unknown[], { signal }: RpcOptions = {}): Promise<T> {
      const [outcome] = await askInOrder(roster, [{ method, params }], signal);
      if (outcome === undefined) throw new UpstreamFailed('chain', 'no answer');
      if ('error' in outcome) throw outcome.error;
      return outcome.result as T;
    },
    async batch(calls, { signal } = {}) {
      if (calls.length === 0) return [];
      if (calls.length <= MAX_BATCH) return askInOrder(roster, calls, signal);
      const parts = Array.from({ length: Math.ceil(calls.length / MAX_BATCH) }, (_, part) =>
        askInOrder(roster, calls.slice(part * MAX_BATCH, (part + 1) * MAX_BATCH), signal),
      );
      return (await Promise.all(parts)).flat();
    },
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

/**
 * Asks one provider after another, each only for what none before it has answered:
 * 1. an answer that every honest node would give stands;
 * 2. a call refused by a limit, or by a node that lacks the method or the block, goes to the next provider;
 * 3. a provider that fails is asked nothing more, all its calls go to the next;
 * 4. when none is left, a call that every provider refused alike is their answer; anything else is UpstreamFailed.
 */
async function askInOrder(roster: Roster, calls: readonly RpcCall[], signal?: AbortSignal): Promise<RpcOutcome[]> {
  const settled: RpcOutcome[] = new Array(calls.length);
  let open = calls.map((call, at) => ({ call, at }));
  const reasons = new Set<string>();
  for (const member of roster.inOrder()) {
    const answers = await roster
      .call(
        member,
        open.map(({ call }) => call),
        signal,
      )
      .catch((error: unknown) => {
        if (!(error instanceof ProviderFailure)) throw error;
        reasons.add(error.message);
      });
    if (answers === undefined) continue;
    open = open.filter(({ at }, position) => {
      const answer = answers[position];
      if (answer === undefined) return true;
      settled[at] = 'error' in answer ? { error: toRpcError(answer.error) } : answer;
      const verdict = 'error' in answer ? judgeError(answer.error) : 'final';
      if (verdict === 'rateLimited') {
        reasons.add('rate limited');
        roster.failed(member, new ProviderFailure('rateLimited', 'rate limited'));
      }
      return verdict !== 'final';
    });
    if (open.length === 0) return settled;
  }
  signal?.throwIfAborted();
  if (reasons.size === 0 && open.every(({ at }) => settled[at] !== undefined)) return settled;
  throw new UpstreamFailed('chain', `no provider answered (${[...reasons].join('; ') || 'none serves this chain'})`);
}

function toRpcError({ code, message, data }: AnswerError): RpcError {
  return new RpcError(code, message, data);
}
