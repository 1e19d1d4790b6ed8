import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';

// A request to the chain: its rank, its answer, and what a node's error means for the next provider.

/**
 * Why a request to the chain is made, most important first.
 * - settle: send a settlement, or answer a buyer about one.
 * - sale: simulate a payer's contract, or run a paid handler.
 * - collect: the collector, reconciliation without a waiting buyer, evidence of a reverted authorization shown again.
 * - offer: read many unverified payers by one request, or run an unpaid offer of a recent payer or of a few new ones.
 * - admit: ask the contract of an unverified payer for a signature, or run the handler of any other unpaid offer.
 * - free: free routes.
 */
export type Rank = 'settle' | 'sale' | 'collect' | 'offer' | 'admit' | 'free';

export const RANKS: readonly Rank[] = ['settle', 'sale', 'collect', 'offer', 'admit', 'free'];

/** The share of the burst that a rank leaves to more important ones. */
export const RESERVE: Readonly<Record<Rank, number>> = {
  settle: 0,
  sale: 0.1,
  collect: 0.2,
  offer: 0.35,
  admit: 0.45,
  free: 0.5,
};

/** The wait for the rank's allowance. Then a settlement asks without it; any other request is refused. */
export const WAIT_MS: Readonly<Record<Rank, number>> = {
  settle: 3000,
  sale: 2000,
  collect: 2000,
  offer: 2000,
  admit: 0,
  free: 0,
};

export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What an answer says for certain; `about` is a block's hash. Two that differ about it cannot both be true. */
export interface Statement {
  readonly about: string | null;
  readonly says: string;
}

/** An entry for each call. Null where its answer is missing, unreadable or not there yet. */
export type ReadStatements = (
  outcomes: readonly RpcOutcome[],
  calls: readonly RpcCall[],
) => readonly (Statement | null)[];

/** An aborted `signal` counts against no provider. */
export interface RpcOptions {
  readonly signal?: AbortSignal;
  /** Checks at most 100 answers. With a reason the next is asked for all, and this one held back once they pass. */
  readonly refuse?: (outcomes: readonly RpcOutcome[]) => string | null;
  /** One answers all calls, at most 100. By default the next is asked only for what was refused. */
  readonly fromOneProvider?: boolean;
  /** An answer counts once two gave it (`witnesses.ts`). A lone provider's word counts. */
  readonly statements?: ReadStatements;
  /** With `statements`, for calls asked again and again: the first provider alone, until it says something. */
  readonly isPoll?: boolean;
  /** How many of the best providers are passed over at first. 0 by default. */
  readonly turn?: number;
  /** Before each HTTP request, for a caller's budget. */
  readonly onRequest?: () => void;
  /** `sale` by default. */
  readonly rank?: Rank;
}

export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcError };

/** The node refused the call (a revert, an unknown method), as another would. */
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

/** JSON-RPC's, of at most 256 bits; leading zeros are tolerated. */
export const quantity = z
  .string()
  .regex(/^0x[0-9a-fA-F]{1,64}$/)
  .transform(BigInt);

/** Above 2^53 - 1 it is refused, not rounded. */
export const index = quantity.refine((value) => value <= BigInt(Number.MAX_SAFE_INTEGER)).transform(Number);

export const data = z.string().refine((text) => text.length % 2 === 0 && /^0x[0-9a-fA-F]*$/.test(text));

/** 32 bytes, lower case. */
export const word = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/)
  .transform((text) => text.toLowerCase() as `0x${string}`);

/** 20 bytes, lower case. */
export const account = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  .transform((text) => text.toLowerCase() as `0x${string}`);

export function toQuantity(value: number | bigint): `0x${string}` {
  return `0x${value.toString(16)}`;
}

export function readOutcome<S extends z.ZodType>(
  outcome: RpcOutcome | undefined,
  schema: S,
  what: string,
): z.output<S> {
  return parseAnswer(schema, resultOf(outcome, what), what);
}

/** Throws UpstreamFailed (502) when the node gave no result or refused the call. */
export function resultOf(outcome: RpcOutcome | undefined, what: string): unknown {
  if (outcome === undefined) throw new UpstreamFailed('chain', `no answer about ${what}`);
  if ('error' in outcome) throw new UpstreamFailed('chain', `${what} was refused`, outcome.error);
  return outcome.result;
}

/** Throws UpstreamFailed (502) for a malformed answer. */
export function parseAnswer<S extends z.ZodType>(schema: S, raw: unknown, what: string): z.output<S> {
  const parsed = schema.safeParse(raw);
  if (!parsed.success) throw new UpstreamFailed('chain', `malformed ${what}`, parsed.error);
  return parsed.data;
}

/** The error statistics use the same names. */
export type FailureKind = 'timeout' | 'transport' | 'http' | 'rateLimited' | 'malformed' | 'wrongChain';

/** The next provider is asked. The message may be published: no URL, no key, nothing of the provider's. */
export class ProviderFailure extends Error {
  readonly kind: FailureKind;
  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ProviderFailure';
    this.kind = kind;
  }
}

export type Answer = { readonly result: unknown } | { readonly error: AnswerError };

export interface AnswerError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** In the order of `ids`. Throws ProviderFailure for any other id: it may answer another request. */
export function readAnswers(body: unknown, ids: readonly number[]): Answer[] {
  const list = ids.length === 1 ? [body] : body;
  if (!Array.isArray(list)) throw asBatchRefusal(body);
  if (list.length !== ids.length) throw new ProviderFailure('malformed', 'an answer with missing entries');
  const byId = new Map<unknown, Answer>();
  for (const entry of list) {
    if (!isObject(entry) || entry.jsonrpc !== '2.0')
      throw new ProviderFailure('malformed', 'an answer that is not JSON-RPC');
    byId.set(entry.id, readEntry(entry));
  }
  return ids.map((id) => {
    const answer = byId.get(id);
    if (answer === undefined) throw new ProviderFailure('malformed', 'an answer with ids of other requests');
    return answer;
  });
}

function readEntry(entry: Record<string, unknown>): Answer {
  const { error } = entry;
  if (error === undefined || error === null) {
    if (entry.result === undefined) throw new ProviderFailure('malformed', 'an answer with neither result nor error');
    return { result: entry.result };
  }
  if (!isObject(error) || typeof error.code !== 'number') throw new ProviderFailure('malformed', 'a malformed error');
  return { error: { code: error.code, message: String(error.message ?? ''), data: error.data } };
}

/** One object answers a whole batch: the node is limited, or does not support batches. */
function asBatchRefusal(body: unknown): ProviderFailure {
  const error = isObject(body) && isObject(body.error) ? body.error : {};
  const limited = isRateLimit(Number(error.code), String(error.message ?? ''));
  return limited
    ? new ProviderFailure('rateLimited', 'rate limited')
    : new ProviderFailure('malformed', 'an answer to a batch that is no list');
}

/** EIP-1474's "limit exceeded"; Arc's public endpoint's; HTTP's, from some nodes. */
const RATE_LIMITS = new Set([-32005, -32011, 429]);
/** JSON-RPC 2.0; Arc's public nodes answer it with "method not supported". */
export const METHOD_NOT_FOUND = -32601;
/** -32001: EIP-1474's "resource not found", reth's for a block that it does not have yet. */
const NOT_HERE = new Set([METHOD_NOT_FOUND, -32001]);
const LACKS_BLOCK =
  /unknown block|block ?out ?of ?range|(header|block|state)\b.{0,40}(not found|not available|out of range)|missing trie node/i;
/** geth, reth. Not eth_getLogs' "beyond current head block": logs without the newest blocks must not replace it. */
const BEYOND_HEAD = /request beyond head block/i;

/**
 * `rateLimited`: this provider refuses for now; `notHere`: it lacks the method or the block, and another may have it;
 * `behind`: its head is older than the block, and it may have it soon; `final`: every correct node gives the same error
 * (a revert, bad parameters, a log range too large).
 */
export function classifyError({ code, message }: AnswerError): 'rateLimited' | 'notHere' | 'behind' | 'final' {
  if (code === 3 || /revert/i.test(message)) return 'final';
  if (isRateLimit(code, message)) return 'rateLimited';
  if (BEYOND_HEAD.test(message)) return 'behind';
  return NOT_HERE.has(code) || LACKS_BLOCK.test(message) ? 'notHere' : 'final';
}

function isRateLimit(code: number, message: string): boolean {
  return RATE_LIMITS.has(code) || /rate limit|too many requests|request limit/i.test(message);
}
