/** Why a provider could not be used for a request. The error statistics use the same names. */
export type FailureKind = 'timeout' | 'transport' | 'http' | 'rateLimited' | 'malformed' | 'wrongChain';

/** One provider failed; the client then asks the next. The message is safe to publish: it holds no URL, no key and nothing that the provider wrote. */
export class ProviderFailure extends Error {
  readonly kind: FailureKind;
  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ProviderFailure';
    this.kind = kind;
  }
}

/** A node's answer to one call, as it came. */
export type Answer = { readonly result: unknown } | { readonly error: AnswerError };

/** A JSON-RPC error object as the node wrote it. */
export interface AnswerError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Reads a JSON-RPC 2.0 answer to `ids` (one plain object for one call, an array for more), in the order of `ids`.
 * Throws ProviderFailure when an id is missing, unknown or given twice, because such an answer may belong to another request.
 */
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

/** The failure behind one object that answers a whole batch. Nodes answer so over a limit, or when they do not support batches. */
function asBatchRefusal(body: unknown): ProviderFailure {
  const error = isObject(body) && isObject(body.error) ? body.error : {};
  const limited = isRateLimit(Number(error.code), String(error.message ?? ''));
  return limited
    ? new ProviderFailure('rateLimited', 'rate limited')
    : new ProviderFailure('malformed', 'an answer to a batch that is no list');
}

/**
 * What an error means for the choice of provider:
 * `rateLimited`: this provider refuses for now; `notHere`: this provider lacks the method or the block, and another may have it;
 * `behind`: its head is older than the block, and it may have the block soon, as another may have it now;
 * `final`: every correct node gives the same error (a revert, bad parameters, a log range too large).
 */
export function classifyError({ code, message }: AnswerError): 'rateLimited' | 'notHere' | 'behind' | 'final' {
  if (code === 3 || /revert/i.test(message)) return 'final';
  if (isRateLimit(code, message)) return 'rateLimited';
  if (BEYOND_HEAD.test(message)) return 'behind';
  return NOT_HERE.has(code) || LACKS_BLOCK.test(message) ? 'notHere' : 'final';
}

/** -32005 is EIP-1474's "limit exceeded"; Arc's public endpoint answers -32011 beyond about two requests a second; some nodes use 429. */
const RATE_LIMITS = new Set([-32005, -32011, 429]);
/** JSON-RPC 2.0; Arc's public nodes answer it with "method not supported". */
export const METHOD_NOT_FOUND = -32601;
/** -32001 is EIP-1474's "resource not found", which reth uses for a block that it does not have yet. */
const NOT_HERE = new Set([METHOD_NOT_FOUND, -32001]);
const LACKS_BLOCK =
  /unknown block|block ?out ?of ?range|(header|block|state)\b.{0,40}(not found|not available|out of range)|missing trie node/i;
/**
 * geth and reth: "request beyond head block: requested 22352770, head 22352769". Arc's public endpoint is several nodes, and answers so too.
 * eth_getLogs' "block range extends beyond current head block" is not meant: the logs of a node that leaves out the newest blocks must not take the place
 * of this refusal.
 */
const BEYOND_HEAD = /request beyond head block/i;

function isRateLimit(code: number, message: string): boolean {
  return RATE_LIMITS.has(code) || /rate limit|too many requests|request limit/i.test(message);
}
