import type { Clock } from '../../lib/clock.ts';
import { type Allowance, createAllowance } from './allowance.ts';
import { type Answer, classifyError, type FailureKind, ProviderFailure } from './answers.ts';
import type { RpcCall } from './call.ts';
import type { ChainLog } from './log.ts';
import type { Provider } from './provider.ts';

/** A provider and its state. */
export interface PooledProvider {
  readonly provider: Provider;
  /** How many requests the provider accepts. */
  readonly allowance: Allowance;
  /** Methods that the provider reported not to have, each with the time from which it is asked again. */
  readonly lacking: Map<string, number>;
  /** True when its chain id was right and it has not failed since. A rate limit does not count as a failure here. */
  verified: boolean;
  wrongChain: boolean;
  failures: number;
  /** Until then the provider is asked after the healthy ones. A provider of another chain is not checked again before. */
  heldBackUntilMs: number;
  /** Whether its head is far from the one that others agree on. It is then asked after them. */
  isOffHead: boolean;
  /** Until then it is asked after the others, because it alone made a statement. */
  doubtedUntilMs: number;
  /** When it answered last, in Unix milliseconds. */
  answeredMs: number;
  checking: Promise<void> | undefined;
}

/** Back-off of a failing provider: doubled with each failure in a row, from 1 s to half a minute. */
const BACK_OFF_MS = 1000;
const MAX_BACK_OFF_MS = 30_000;
/** How often a provider of another chain is checked again. */
const WRONG_CHAIN_RETRY_MS = 300_000;
/** How long a provider is not asked for a method that it lacks: long enough to cost nothing, short enough to notice an upgrade. */
const LACKING_RETRY_MS = 600_000;

/** The chain that a provider must serve before it is used. */
export interface ChainIdentity {
  readonly chainId: number;
  readonly genesisHash: `0x${string}` | undefined;
}

/** The providers, with the rule that decides which is asked first. */
export interface ProviderPool {
  /** All of them, in the operator's order. */
  readonly entries: readonly PooledProvider[];
  /**
   * The providers to ask, best first and begun at the `turn`th, without those that serve another chain or are set
   * apart.
   */
  inOrder(turn?: number): PooledProvider[];
  /** Asks one provider, once its chain id is verified, and notes success or failure. Throws ProviderFailure, or the signal's reason. */
  call(entry: PooledProvider, calls: readonly RpcCall[], signal?: AbortSignal): Promise<Answer[]>;
  /** Notes a failure that `call` could not see (a call of a batch that was refused by a limit). */
  failed(entry: PooledProvider, failure: ProviderFailure): void;
  /** Whether the provider lacks the method and another provider may have it. When none has it, all are asked. */
  lacks(entry: PooledProvider, method: string): boolean;
  noteLacking(entry: PooledProvider, method: string): void;
  /** Asks every provider for its chain id; true when at least one serves ours. */
  check(): Promise<boolean>;
}

interface PoolHooks {
  /** Whether the provider of this host is set apart. */
  isApart?(host: string): boolean;
  /** Called for each HTTP request to the provider of this host. */
  onRequest?(host: string): void;
}

/**
 * Invariant: after a failure, no call reaches a provider before it has reported the wanted chain id again.
 * A failed provider is checked in the background before it is asked first again, so that no buyer waits for its time-out.
 */
export function createProviderPool(
  providers: readonly Provider[],
  wanted: ChainIdentity,
  clock: Clock,
  log: ChainLog,
  { isApart = () => false, onRequest = () => {} }: PoolHooks = {},
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
      if (!entry.verified) await untilAborted(verify(entry), signal);
      entry.allowance.spend();
      onRequest(entry.provider.host);
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

/** Notes a failure, and logs it when it changes how the provider is treated. */
function noteFailure(entry: PooledProvider, failure: ProviderFailure, nowMs: number, log: ChainLog): void {
  // Its allowance says when it may be asked again. A provider at its limit is not failing.
  if (failure.kind === 'rateLimited') return void entry.allowance.refused();
  const { failures, wrongChain } = entry;
  if (!countFailure(entry, failure.kind, nowMs)) return;
  if (failures > 0 && entry.wrongChain === wrongChain) return;
  const consequence = entry.wrongChain ? 'excluded' : 'held back';
  log.warn({ provider: entry.provider.origin, reason: failure.message }, `chain provider ${consequence}`);
}

function noteSuccess(entry: PooledProvider, log: ChainLog): void {
  if (entry.failures > 0) log.info({ provider: entry.provider.origin }, 'chain provider answers again');
  Object.assign(entry, { failures: 0, heldBackUntilMs: 0, wrongChain: false });
}

/** Counts a failure. Returns false when the provider was held back already, so that requests which fail together count once. */
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

/** Healthy providers in the operator's order, then those held back. Calls `probe` for each failed provider whose back-off is over. */
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
  // A pruned node has no genesis block, which does not mean that it serves another chain.
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

/** Waits for a task that several callers share. The caller's abort ends the wait, not the task. */
async function untilAborted(task: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return task;
  // After an abort the task may still reject. Without this handler the unhandled rejection would end the process.
  task.catch(() => undefined);
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([task, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
