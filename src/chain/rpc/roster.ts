import type { Clock } from '../../lib/clock.ts';
import { type Allowance, createAllowance } from './allowance.ts';
import { type Answer, type FailureKind, judgeError, ProviderFailure } from './answers.ts';
import type { RpcCall } from './call.ts';
import type { ChainLog } from './log.ts';
import type { Provider } from './provider.ts';

/** A provider and what we know of its health. */
export interface Member {
  readonly provider: Provider;
  /** How many requests it bears. */
  readonly allowance: Allowance;
  /** Methods that it said it does not have, with the time at which it is asked again. */
  readonly lacking: Map<string, number>;
  /** Its chain id was right and it has not failed since (a rate limit apart: that says nothing about which chain it serves). */
  verified: boolean;
  wrongChain: boolean;
  failures: number;
  /** Until then it stands behind the healthy ones; excluded ones are not asked again before. */
  heldBackUntilMs: number;
  checking: Promise<void> | undefined;
}

/** Back-off of a failing provider: doubled with each failure in a row, from 1 s to half a minute. */
const BACK_OFF_MS = 1000;
const MAX_BACK_OFF_MS = 30_000;
/** How often a provider of another chain is asked whether it is still one. */
const WRONG_CHAIN_RETRY_MS = 300_000;
/** How long a method that a provider lacks is asked of others only: long enough to cost nothing, short enough to notice an upgrade. */
const LACKING_RETRY_MS = 600_000;

/** What a provider must serve before it is asked anything. */
export interface ChainIdentity {
  readonly chainId: number;
  readonly genesisHash: `0x${string}` | undefined;
}

/** The providers in the operator's order, with the rule of who is asked first. */
export interface Roster {
  /** All of them, in the operator's order. */
  readonly members: readonly Member[];
  /** Whom to ask, best first; never one that serves another chain. */
  inOrder(): Member[];
  /** Asks one provider, after its chain id was found right; notes how it went. Throws ProviderFailure, or the signal's reason. */
  call(member: Member, calls: readonly RpcCall[], signal?: AbortSignal): Promise<Answer[]>;
  /** Notes a failure that the answer itself did not show (a call of a batch refused by a limit). */
  failed(member: Member, failure: ProviderFailure): void;
  /** Whether to spare this provider a method that it lacks: only while another one may have it. */
  lacks(member: Member, method: string): boolean;
  noteLacking(member: Member, method: string): void;
  /** Asks every provider for its chain id; true when at least one serves ours. */
  check(): Promise<boolean>;
}

/**
 * Invariant: no call reaches a provider that has not said, since it last failed, that it serves the wanted chain.
 * A failed provider proves itself in the background before it comes first again, so that no buyer waits for its time-out.
 */
export function createRoster(
  providers: readonly Provider[],
  wanted: ChainIdentity,
  clock: Clock,
  log: ChainLog,
): Roster {
  const members = providers.map((provider) => newMember(provider, clock));
  const isLacking = ({ lacking }: Member, method: string) => (lacking.get(method) ?? 0) > clock.nowMs();

  const failed = (member: Member, failure: ProviderFailure) => bookFailure(member, failure, clock.nowMs(), log);
  const succeeded = (member: Member) => bookSuccess(member, log);

  function verify(member: Member): Promise<void> {
    member.checking ??= identify(member.provider, wanted)
      .then(
        () => {
          member.verified = true;
          succeeded(member);
        },
        (failure: ProviderFailure) => {
          failed(member, failure);
          throw failure;
        },
      )
      .finally(() => {
        member.checking = undefined;
      });
    return member.checking;
  }

  return {
    members,
    failed,
    lacks: (member, method) =>
      isLacking(member, method) && members.some((other) => !other.wrongChain && !isLacking(other, method)),
    noteLacking: (member, method) => void member.lacking.set(method, clock.nowMs() + LACKING_RETRY_MS),
    inOrder: () => rank(members, clock.nowMs(), (member) => void verify(member).catch(() => undefined)),
    async check() {
      await Promise.allSettled(members.map(verify));
      return members.some((member) => member.verified);
    },
    async call(member, calls, signal) {
      if (!member.verified) await untilAborted(verify(member), signal);
      member.allowance.spend();
      try {
        const answers = await member.provider.call(calls, signal);
        if (member.failures > 0) succeeded(member);
        return answers;
      } catch (error) {
        if (error instanceof ProviderFailure) failed(member, error);
        throw error;
      }
    },
  };
}

function newMember(provider: Provider, clock: Clock): Member {
  return {
    provider,
    allowance: createAllowance(clock),
    lacking: new Map(),
    verified: false,
    wrongChain: false,
    failures: 0,
    heldBackUntilMs: 0,
    checking: undefined,
  };
}

/** Books a failure, and logs it where it changes how the provider is treated. */
function bookFailure(member: Member, failure: ProviderFailure, nowMs: number, log: ChainLog): void {
  if (failure.kind === 'rateLimited') member.allowance.refused();
  const { failures, wrongChain } = member;
  if (!noteFailure(member, failure.kind, nowMs)) return;
  if (failures > 0 && member.wrongChain === wrongChain) return;
  const consequence = member.wrongChain ? 'excluded' : 'held back';
  log.warn({ provider: member.provider.origin, reason: failure.message }, `chain provider ${consequence}`);
}

function bookSuccess(member: Member, log: ChainLog): void {
  if (member.failures > 0) log.info({ provider: member.provider.origin }, 'chain provider answers again');
  Object.assign(member, { failures: 0, heldBackUntilMs: 0, wrongChain: false });
}

/** Counts a failure; false when it came while the member was held back already: requests that were under way together fail together and count once. */
function noteFailure(member: Member, kind: FailureKind, nowMs: number): boolean {
  const wrongChain = kind === 'wrongChain';
  if (kind !== 'rateLimited') member.verified = false;
  if (!wrongChain && member.failures > 0 && nowMs < member.heldBackUntilMs) return false;
  member.failures += 1;
  member.wrongChain = wrongChain;
  const backOffMs = Math.min(BACK_OFF_MS * 2 ** (member.failures - 1), MAX_BACK_OFF_MS);
  member.heldBackUntilMs = nowMs + (wrongChain ? WRONG_CHAIN_RETRY_MS : backOffMs);
  return true;
}

/** Healthy ones in the operator's order, then those held back; `probe` is called for those whose time to prove themselves has come. */
function rank(members: readonly Member[], nowMs: number, probe: (member: Member) => void): Member[] {
  const healthy: Member[] = [];
  const behind: Member[] = [];
  for (const member of members) {
    const unproven = member.failures > 0 && !member.verified;
    const due = nowMs >= member.heldBackUntilMs;
    if (unproven && due && member.checking === undefined) probe(member);
    if (member.wrongChain) continue;
    (due && !unproven ? healthy : behind).push(member);
  }
  return behind.length === 0 ? healthy : [...healthy, ...behind];
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
  // A pruned node has none to show; that is no sign of another chain.
  if (block === null) return;
  const hash = typeof block === 'object' && 'hash' in block ? String(block.hash).toLowerCase() : '';
  if (hash !== genesisHash.toLowerCase()) throw new ProviderFailure('wrongChain', 'serves a chain of another genesis');
}

function resultOf(answer: Answer | undefined, missing: string): unknown {
  if (answer === undefined) throw new ProviderFailure('malformed', missing);
  if (!('error' in answer)) return answer.result;
  throw judgeError(answer.error) === 'rateLimited'
    ? new ProviderFailure('rateLimited', 'rate limited')
    : new ProviderFailure('malformed', missing);
}

/** Waits for a task that others share: the caller's abort ends the waiting, not the task. */
async function untilAborted(task: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return task;
  // Whoever waits no longer must not leave the failure of the task to nobody: that would end the process.
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
