import { Pool } from 'undici';
import type { Clock } from '../../lib/clock.ts';
import type { Common, Log } from '../../lib/common.ts';
import { orAborted } from '../../lib/tasks.ts';
import { type Answer, classifyError, type FailureKind, ProviderFailure, type RpcCall, readAnswers } from './wire.ts';

// The providers of one chain, in the operator's order, those held back last. Each must report our chain id before it is
// asked, and again after a failure. Its refusals alone teach how many requests a second it accepts.

export interface PooledProvider {
  readonly provider: Provider;
  readonly allowance: Allowance;
  /** Methods that it lacks, each with the time from which it is asked again. */
  readonly lacking: Map<string, number>;
  /** Its chain id was right and it has not failed since. A rate limit is no failure here. */
  verified: boolean;
  wrongChain: boolean;
  failures: number;
  /** Until then it comes after the healthy ones, and is not checked again if its chain is another. */
  heldBackUntilMs: number;
  isOffHead: boolean;
  /** Until then it is asked last: nobody confirmed its statement. */
  doubtedUntilMs: number;
  answeredMs: number;
  checking: Promise<void> | undefined;
}

export interface ProviderPool {
  /** In the operator's order. */
  readonly entries: readonly PooledProvider[];
  /** Best first, begun at the `turn`th, without those of another chain or set apart. */
  inOrder(turn?: number): PooledProvider[];
  /** Verifies its chain id first, and notes the outcome. Throws ProviderFailure, or the signal's reason. */
  call(entry: PooledProvider, calls: readonly RpcCall[], signal?: AbortSignal): Promise<Answer[]>;
  /** Notes a failure that `call` could not see: a limit refused one call of a batch. */
  failed(entry: PooledProvider, failure: ProviderFailure): void;
  /** True only while another provider may have the method. */
  lacks(entry: PooledProvider, method: string): boolean;
  noteLacking(entry: PooledProvider, method: string): void;
  /** Whether at least one serves our chain. */
  check(): Promise<boolean>;
}

interface ChainIdentity {
  readonly chainId: number;
  readonly genesisHash: `0x${string}` | undefined;
}

/** How long a provider is not asked for a method that it lacks. Then an upgrade is noticed. */
const LACKING_RETRY_MS = 600_000;

/** After a failure a provider's chain id is asked for again in the background. No call reaches it before. */
export function createProviderPool(
  { clock, log }: Common,
  providers: readonly Provider[],
  wanted: ChainIdentity,
  isApart: (host: string) => boolean,
  onRequest?: (host: string) => void,
): ProviderPool {
  const entries = providers.map((provider) => newEntry(provider, clock));
  const isLacking = ({ lacking }: PooledProvider, method: string) => (lacking.get(method) ?? 0) > clock.nowMs();
  const failed = (entry: PooledProvider, failure: ProviderFailure) => noteFailure(entry, failure, clock.nowMs(), log);
  const succeeded = (entry: PooledProvider) => noteSuccess(entry, log);

  function verify(entry: PooledProvider): Promise<void> {
    entry.checking ??= identify(entry.provider, wanted)
      .then(
        () => {
          entry.verified = true;
          succeeded(entry);
        },
        (failure: ProviderFailure) => {
          failed(entry, failure);
          throw failure;
        },
      )
      .finally(() => {
        entry.checking = undefined;
      });
    return entry.checking;
  }

  const isTrusted = ({ provider }: PooledProvider) => !isApart(provider.host);
  const verifyBehind = (entry: PooledProvider) => void verify(entry).catch(() => undefined);

  return {
    entries,
    failed,
    lacks: (entry, method) =>
      isLacking(entry, method) && entries.some((other) => !other.wrongChain && !isLacking(other, method)),
    noteLacking: (entry, method) => void entry.lacking.set(method, clock.nowMs() + LACKING_RETRY_MS),
    inOrder: (turn = 0) => begunAt(turn, ordered(entries.filter(isTrusted), clock.nowMs(), verifyBehind)),
    async check() {
      await Promise.allSettled(entries.map(verify));
      return entries.some((entry) => entry.verified);
    },
    async call(entry, calls, signal) {
      // Callers share the check: an abort ends one's wait, not the check.
      if (!entry.verified) await (signal ? orAborted(verify(entry), signal) : verify(entry));
      entry.allowance.spend();
      onRequest?.(entry.provider.host);
      try {
        const answers = await entry.provider.call(calls, signal);
        entry.answeredMs = clock.nowMs();
        if (entry.failures > 0) succeeded(entry);
        return answers;
      } catch (error) {
        if (error instanceof ProviderFailure) failed(entry, error);
        throw error;
      }
    },
  };
}

function newEntry(provider: Provider, clock: Clock): PooledProvider {
  return {
    provider,
    allowance: createAllowance(clock),
    lacking: new Map(),
    verified: false,
    wrongChain: false,
    failures: 0,
    heldBackUntilMs: 0,
    isOffHead: false,
    doubtedUntilMs: 0,
    answeredMs: Number.NEGATIVE_INFINITY,
    checking: undefined,
  };
}

function noteFailure(entry: PooledProvider, failure: ProviderFailure, nowMs: number, log: Log): void {
  // At its limit it is not failing. Its allowance says when it may be asked again.
  if (failure.kind === 'rateLimited') return void entry.allowance.refused();
  const { failures, wrongChain } = entry;
  if (!countFailure(entry, failure.kind, nowMs)) return;
  if (failures > 0 && entry.wrongChain === wrongChain) return;
  const consequence = entry.wrongChain ? 'excluded' : 'held back';
  log.warn({ provider: entry.provider.origin, reason: failure.message }, `chain provider ${consequence}`);
}

const BACK_OFF_MS = 1000;
const MAX_BACK_OFF_MS = 30_000;
const WRONG_CHAIN_RETRY_MS = 300_000;

/** False when it was held back already: requests that fail together count once. */
function countFailure(entry: PooledProvider, kind: FailureKind, nowMs: number): boolean {
  const wrongChain = kind === 'wrongChain';
  entry.verified = false;
  if (!wrongChain && entry.failures > 0 && nowMs < entry.heldBackUntilMs) return false;
  entry.failures += 1;
  entry.wrongChain = wrongChain;
  const backOffMs = Math.min(BACK_OFF_MS * 2 ** (entry.failures - 1), MAX_BACK_OFF_MS);
  entry.heldBackUntilMs = nowMs + (wrongChain ? WRONG_CHAIN_RETRY_MS : backOffMs);
  return true;
}

function noteSuccess(entry: PooledProvider, log: Log): void {
  if (entry.failures > 0) log.info({ provider: entry.provider.origin }, 'chain provider answers again');
  Object.assign(entry, { failures: 0, heldBackUntilMs: 0, wrongChain: false });
}

async function identify(provider: Provider, { chainId, genesisHash }: ChainIdentity): Promise<void> {
  const questions: RpcCall[] = [{ method: 'eth_chainId', params: [] }];
  if (genesisHash !== undefined) questions.push({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
  const [id, genesis] = await provider.call(questions);
  const served = resultOf(id, 'no chain id given');
  if (typeof served !== 'string' || !/^0x[0-9a-fA-F]{1,16}$/.test(served)) {
    throw new ProviderFailure('malformed', 'a malformed chain id');
  }
  if (BigInt(served) !== BigInt(chainId)) {
    throw new ProviderFailure('wrongChain', `serves chain ${BigInt(served)}, not ${chainId}`);
  }
  if (genesisHash === undefined) return;
  const block = resultOf(genesis, 'no genesis given');
  // A pruned node has no genesis block.
  if (block === null) return;
  const hash = typeof block === 'object' && 'hash' in block ? String(block.hash).toLowerCase() : '';
  if (hash !== genesisHash.toLowerCase()) throw new ProviderFailure('wrongChain', 'serves a chain of another genesis');
}

function resultOf(answer: Answer | undefined, missing: string): unknown {
  if (answer === undefined) throw new ProviderFailure('malformed', missing);
  if (!('error' in answer)) return answer.result;
  throw classifyError(answer.error) === 'rateLimited'
    ? new ProviderFailure('rateLimited', 'rate limited')
    : new ProviderFailure('malformed', missing);
}

function ordered(
  entries: readonly PooledProvider[],
  nowMs: number,
  probe: (entry: PooledProvider) => void,
): PooledProvider[] {
  const healthy: PooledProvider[] = [];
  const behind: PooledProvider[] = [];
  for (const entry of entries) {
    const unproven = entry.failures > 0 && !entry.verified;
    const due = nowMs >= entry.heldBackUntilMs;
    const isDoubted = entry.isOffHead || nowMs < entry.doubtedUntilMs;
    if (unproven && due && entry.checking === undefined) probe(entry);
    if (entry.wrongChain) continue;
    (due && !unproven && !isDoubted ? healthy : behind).push(entry);
  }
  return behind.length === 0 ? healthy : [...healthy, ...behind];
}

function begunAt(turn: number, entries: PooledProvider[]): PooledProvider[] {
  const start = entries.length === 0 ? 0 : turn % entries.length;
  return start === 0 ? entries : [...entries.slice(start), ...entries.slice(0, start)];
}

export interface Provider {
  /** Scheme and host. Nothing else may be published: the path may hold a key. */
  readonly origin: string;
  /** With its port where the URL names one. Two URLs of one host are one witness. */
  readonly host: string;
  /** One HTTP request. Throws ProviderFailure without an answer to each call. */
  call(calls: readonly RpcCall[], signal?: AbortSignal): Promise<Answer[]>;
  close(): Promise<void>;
}

/** A full block with receipts is far smaller. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
/** More parallel requests are queued. Public endpoints limit long before. */
const MAX_CONNECTIONS = 32;
/** Above undici's 4 s, to save TLS handshakes. Where a server closes earlier, `withOneRetry` helps. */
const KEEP_ALIVE_MS = 30_000;
/** Some endpoints answer 403 to what does not look like a browser. */
const USER_AGENT = 'Mozilla/5.0 (compatible; percall)';

/** Opens nothing until the first call. `timeoutMs` lasts until the answer's last byte. */
export function createProvider(url: string, timeoutMs: number): Provider {
  const { origin, host, pathname, search, username, password } = new URL(url);
  const pool = new Pool(origin, {
    connections: MAX_CONNECTIONS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectTimeout: timeoutMs,
    maxResponseSize: MAX_ANSWER_BYTES,
  });
  const headers: Record<string, string> = { 'content-type': 'application/json', 'user-agent': USER_AGENT };
  if (username !== '' || password !== '') {
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    headers.authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  }
  const path = `${pathname}${search}`;
  let lastId = 0;

  async function post(body: string, signal: AbortSignal): Promise<string> {
    const response = await pool.request({ path, method: 'POST', headers, body, signal });
    if (response.statusCode === 200) return response.body.text();
    response.body.dump().catch(() => undefined);
    if (response.statusCode === 429) throw new ProviderFailure('rateLimited', 'rate limited');
    throw new ProviderFailure('http', `HTTP ${response.statusCode}`);
  }

  return {
    origin,
    host,
    async call(calls, signal) {
      const ids = calls.map(() => ++lastId);
      const requests = calls.map(({ method, params }, at) => ({ jsonrpc: '2.0', id: ids[at], method, params }));
      const body = JSON.stringify(requests.length === 1 ? requests[0] : requests);
      const text = await withinTime(timeoutMs, signal, (both) => withOneRetry(() => post(body, both)));
      return readAnswers(parseJson(text), ids);
    },
    close: () => pool.destroy(),
  };
}

/** Any error but the caller's abort is a ProviderFailure. */
async function withinTime<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const control = new AbortController();
  // Made only when needed: its stack costs more than the rest of this function.
  const timer = setTimeout(() => control.abort(new ProviderFailure('timeout', 'timed out')), timeoutMs);
  const onAbort = () => control.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    return await task(control.signal);
  } catch (error) {
    signal?.throwIfAborted();
    if (control.signal.aborted) throw control.signal.reason;
    throw error instanceof ProviderFailure ? error : new ProviderFailure('transport', describe(error), error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

const RESETS = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** After the reset of an idle connection. It is safe: a raw transaction sent twice is the same one. */
async function withOneRetry<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    if (!RESETS.has(codeOf(error))) throw error;
    return task();
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

function describe(error: unknown): string {
  if (codeOf(error) === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return 'an answer that is too large';
  return codeOf(error) === '' ? 'the connection failed' : `the connection failed (${codeOf(error)})`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ProviderFailure('malformed', 'an answer that is not JSON');
  }
}

/** How many requests a provider accepts. */
export interface Allowance {
  /** Requests that may be sent now. Infinite while no limit is known: before a refusal, and above MOST. */
  free(): number;
  /** The most that `free` can be. */
  burst(): number;
  /** Estimated, in requests a second. Infinite while no limit is known. */
  rate(): number;
  /** Counts a request, allowed or not. */
  spend(): void;
  refused(): void;
}

/** In requests a second. Above zero: only a request shows that a provider has recovered. */
const LEAST = 0.2;
/** Above so many requests a second the limit is dropped: no public endpoint is known to have a higher one. */
const MOST = 100;
/** Factors of the rate: after a refusal, at most once a second, and after QUIET_MS without one. */
const FEWER = 0.8;
const MORE = 1.25;
const QUIET_MS = 2000;
const SECOND_MS = 1000;
const BURST_SECONDS = 0.5;

/**
 * A token bucket. Refusals teach its rate, because public endpoints publish none (Arc's: about 2 requests a second).
 * The first sets it to what the last second served; later ones lower it, but not below that.
 */
export function createAllowance(clock: Clock): Allowance {
  let rate = Number.POSITIVE_INFINITY;
  // The rate before the last change.
  let before = rate;
  let level = Number.POSITIVE_INFINITY;
  let filledMs = 0;
  let changedMs = 0;
  // Times in the last second, oldest first.
  let sent: number[] = [];
  let refusals: number[] = [];

  const burst = (): number => Math.max(1, rate * BURST_SECONDS);

  function grow(now: number): void {
    // Fewer than two requests show nothing about a slow provider's limit.
    if (now - changedMs < Math.max(QUIET_MS, (2 * SECOND_MS) / rate)) return;
    rate = rate * MORE > MOST ? Number.POSITIVE_INFINITY : rate * MORE;
    changedMs = now;
  }

  function fill(now: number): void {
    if (rate === Number.POSITIVE_INFINITY) return;
    grow(now);
    level = Math.min(burst(), level + (rate * Math.max(0, now - filledMs)) / SECOND_MS);
    filledMs = now;
  }

  return {
    free() {
      fill(clock.nowMs());
      return level;
    },
    burst,
    rate: () => rate,
    spend() {
      const now = clock.nowMs();
      fill(now);
      level -= 1;
      sent.push(now);
      // Bounds memory: at 201 entries the oldest 101 go.
      if (sent.length > 2 * MOST) sent = sent.slice(-MOST);
    },
    refused() {
      const now = clock.nowMs();
      refusals.push(now);
      [sent, refusals] = [lastSecond(sent, now), lastSecond(refusals, now)];
      if (rate === Number.POSITIVE_INFINITY || now - changedMs >= SECOND_MS) [before, changedMs] = [rate, now];
      const borne = sent.length - refusals.length;
      const learned = before === Number.POSITIVE_INFINITY ? Math.max(1, borne) : Math.max(LEAST, borne, before * FEWER);
      rate = Math.min(rate, learned);
      [level, filledMs] = [0, now];
    },
  };
}

function lastSecond(times: readonly number[], now: number): number[] {
  return times.filter((atMs) => now - atMs < SECOND_MS);
}
