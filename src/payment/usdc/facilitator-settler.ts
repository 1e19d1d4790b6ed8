import type { Config } from '../../config.ts';
import { type Clock, nowSeconds } from '../../lib/clock.ts';
import type { Common, Log } from '../../lib/common.ts';
import { bytesToHex } from '../../lib/hex.ts';
import { orAborted } from '../../lib/tasks.ts';
import { createLimiter } from '../../upstream/client/limiter.ts';
import {
  ALREADY_USED,
  type Authorization,
  type Found,
  HANDED_OVER,
  type Intent,
  type Outcome,
  REVERTED,
  type Settler,
  type SettlerContext,
} from '../settler.ts';
import type { TokenWatch } from './checks.ts';
import type { Evidence } from './evidence.ts';
import { type FacilitatorClient, type RequestTerms, type SettleReply, settleRequest } from './facilitator.ts';
import { createPayerBans } from './payer-reads.ts';

// A settler that uses a third party's service: a facilitator, or the Gateway. Its answer alone never counts as payment.
// 1. A payment that was used before it was handed over belongs to another ledger. It fails.
// 2. The row notes the handing over on disk. Then one request is sent, bounded in time, and never repeated.
// 3. Refused at the first handing over, and unused: failed, and may be used again.
// 4. Else the evidence is watched. A transaction that the service names is read first; a wrong name proves nothing.
// 5. The queue limits the requests, tries again after pauses, and stops sales while the service does not answer.

interface RemoteSettlerOptions extends Pick<SettlerContext, 'noteBroadcast'> {
  /** The chain's logs, or the Gateway's transfers, which name no transaction when they settle. */
  readonly evidence: Pick<Evidence, 'lookup'> & Partial<Pick<Evidence, 'paidIn'>>;
  /** Whether it is used, by one read for many. While unused, the evidence shows nothing. Null without such a read. */
  readonly isUsed: ((authorization: Authorization) => Promise<boolean>) | null;
  /** Milliseconds between the first two reads of the evidence. Later pauses are longer. */
  readonly pollMs: number;
  /** Milliseconds that the evidence is watched after an answer. */
  readonly watchMs: number;
  readonly client: Pick<FacilitatorClient, 'settle'>;
  readonly terms: RequestTerms;
  /** Code at the payer's address now: it may be set after the check (EIP-7702). Null where no payer has code. */
  readonly hasCode: ((authorization: Authorization) => Promise<boolean>) | null;
  /** Why a used nonce fails, on the Gateway: an earlier transfer is not ours. Null on the chain: any transfer pays. */
  readonly usedBefore: ((intent: Intent) => Promise<string | null>) | null;
  /** The facilitator answered for a plain account and nothing moved. The token may be paused for every payer. */
  onUnsettled(): void;
  /** Milliseconds without an answer to a request after which sales stop. */
  readonly stallMs: number;
}

const BANNED = 'its settlements move nothing';
const LONGEST_POLL_MS = 2000;
const TRANSACTION = /^0x[0-9a-fA-F]{64}$/;
const UNKNOWN: Outcome = { kind: 'unknown' };

/** Bans accounts with code for a day if an answer moves nothing: they have nothing at stake, and every try costs. */
export function createRemoteSettler(common: Common, options: RemoteSettlerOptions): Settler {
  const { clock, log } = common;
  const { client, terms, usedBefore, noteBroadcast, stallMs, evidence } = options;
  const bans = createPayerBans(clock);

  const look = createLook(log, evidence);
  const watch = createWatch(clock, options, look);

  /** Null when the row no longer awaits settlement. */
  async function handOver({ id, authorization }: Intent, signal: AbortSignal): Promise<SettleReply | null> {
    const waiting = await noteBroadcast([{ id, transaction: HANDED_OVER }]);
    return waiting.has(id) ? client.settle(settleRequest(authorization, terms), id, signal) : null;
  }

  async function attempt(intent: Intent, { signal, inTurn }: AttemptContext): Promise<Attempt> {
    const { id, broadcast } = intent;
    const used = broadcast || !usedBefore ? null : await usedBefore(intent);
    if (used !== null) return { outcome: { kind: 'failed', reason: used }, isHeard: true };
    const reply = await inTurn(() => handOver(intent, signal));
    if (reply === null) return { outcome: UNKNOWN, isHeard: true };
    const isHeard = reply.kind !== 'unclear' || !reply.isTransport;
    // On the first handing over, "used" is not our own use: another ledger has used the nonce since the check.
    if (reply.kind === 'used' && usedBefore && broadcast === false)
      return { outcome: { kind: 'failed', reason: ALREADY_USED }, isHeard };
    // On the first handing over only. The facilitator may have broadcast a resumed row before.
    if (reply.kind === 'refused' && broadcast === false) {
      log.info({ payment: id, reason: reply.reason }, 'the facilitator refused a payment');
      const verdict = await look(intent);
      return { outcome: verdict.kind === 'open' ? { kind: 'failed', reason: REVERTED } : verdict, isHeard };
    }
    const outcome = await watch(intent, reply, signal);
    if (outcome.kind === 'settled') return { outcome, isHeard };
    const isContract = await hasCodeByNow(options, intent);
    noteUnsettled(intent, reply, { isHeard, isContract });
    // A payer's contract can hang the facilitator, so its silence says nothing about the facilitator.
    return { outcome, isHeard: isHeard || isContract };
  }

  function noteUnsettled(
    { id, authorization }: Intent,
    reply: SettleReply,
    { isHeard, isContract }: { isHeard: boolean; isContract: boolean },
  ): void {
    const answer = 'detail' in reply ? reply.detail : reply.kind;
    log.warn({ payment: id, answer }, 'no evidence shows whether the facilitator settled a payment');
    if (!isHeard) return;
    if (isContract) bans.add(bytesToHex(authorization.from));
    else options.onUnsettled();
  }

  const refuses = (payer: Uint8Array) => (bans.has(bytesToHex(payer)) ? BANNED : null);
  const queue = createRemoteQueue(common, attempt, refuses, stallMs);
  return {
    ...queue,
    refused: () => bans.all().map((payer) => [payer, BANNED]),
    lookup: evidence.lookup,
    ownOnly: usedBefore !== null,
  };
}

/** A payment that was handed over before waits for the requests of new ones. */
function createLook(log: Log, evidence: Pick<Evidence, 'lookup'>): (intent: Intent) => Promise<Found> {
  return async ({ authorization, fromBlock, broadcast }) => {
    const rank = broadcast ? 'collect' : 'settle';
    return evidence.lookup(authorization, fromBlock, { rank }).catch((err) => {
      log.warn({ err }, 'the evidence of a settlement could not be read');
      return UNKNOWN;
    });
  };
}

function createWatch(clock: Clock, options: RemoteSettlerOptions, look: (intent: Intent) => Promise<Found>) {
  const { evidence, isUsed, pollMs, watchMs } = options;
  /** Unused and not expired. Otherwise only the evidence shows the end. */
  const isStillOpen = async ({ authorization }: Intent): Promise<boolean> => {
    if (!isUsed || BigInt(nowSeconds(clock)) >= authorization.validBefore) return false;
    return !(await isUsed(authorization).catch(() => true));
  };
  return async (intent: Intent, reply: SettleReply, signal: AbortSignal): Promise<Outcome> => {
    const until = clock.nowMs() + watchMs;
    for (let pause = pollMs; !signal.aborted; pause = Math.min(pause * 2, LONGEST_POLL_MS)) {
      const named = await readNamed(evidence, intent, reply);
      const verdict = named ?? ((await isStillOpen(intent)) ? UNKNOWN : await look(intent));
      if (verdict.kind === 'settled' || verdict.kind === 'failed') return verdict;
      if (clock.nowMs() + pause >= until) break;
      await clock.sleep(pause, signal).catch(() => {});
    }
    return UNKNOWN;
  };
}

/** Null without a named transaction, and when it does not show the payment. */
async function readNamed(
  { paidIn }: RemoteSettlerOptions['evidence'],
  { authorization }: Intent,
  reply: SettleReply,
): Promise<Outcome | null> {
  if (reply.kind !== 'accepted' || !TRANSACTION.test(reply.transaction) || !paidIn) return null;
  return paidIn(authorization, reply.transaction as `0x${string}`).catch(() => null);
}

/** At the check or now. A read that fails leaves what the check found. */
async function hasCodeByNow({ hasCode: read }: RemoteSettlerOptions, { authorization, hasCode }: Intent) {
  return hasCode || ((await read?.(authorization).catch(() => false)) ?? false);
}

export interface Attempt {
  readonly outcome: Outcome;
  /** False without a usable answer: none, a time-out, a server error, another network. A refusal is usable. */
  readonly isHeard: boolean;
}

export interface AttemptContext {
  /** Aborts when the service stops. A request without an answer then stays unknown. */
  readonly signal: AbortSignal;
  /** Waits until fewer requests than the limit are running, then runs `ask`. */
  inTurn<T>(ask: () => Promise<T>): Promise<T>;
}

/** New requests at once. A facilitator answers when a block is mined, so many share one block. */
const RUNNING = 128;
/** Requests that wait at the most. Reconciliation finds the payments beyond that. */
const WAITING = 4096;
/** Repeated requests at once. The limit is their own, so that they do not take the places of new payments. */
const RETRIES_RUNNING = 8;
/** New payments in a row without an answer after which sales stop. */
const UNHEARD_LIMIT = 3;
/** Milliseconds that sales then stop: ten blocks on Arc. */
const REST_MS = 5000;
/** Milliseconds before another try: doubled up to the longest. The remote service may settle it meanwhile. */
const FIRST_AGAIN_MS = 1000;
const LONGEST_AGAIN_MS = 300_000;

type RemoteQueue = Pick<Settler, 'settle' | 'unavailable' | 'refuses' | 'stop'>;

/** Stops sales for REST_MS after UNHEARD_LIMIT unheard payments, or while one waits `stallMs`. Plain accounts count. */
export function createRemoteQueue(
  { clock, log }: Common,
  attempt: (intent: Intent, context: AttemptContext) => Promise<Attempt>,
  refuses: (payer: Uint8Array) => string | null,
  stallMs: number,
): RemoteQueue {
  const fresh = createLimiter(RUNNING, WAITING);
  const again = createLimiter(RETRIES_RUNNING, WAITING);
  const stopping = new AbortController();
  const { signal } = stopping;
  // Unanswered requests of new payments: when each was sent, in Unix milliseconds.
  const asked = new Map<symbol, number>();
  const running = new Set<Promise<unknown>>();
  // Open payments with the number of their attempts, the oldest attempt first.
  const tried = new Map<string, { times: number; notBeforeMs: number }>();
  let unheard = 0;
  let restUntilMs = 0;

  function judge({ isHeard }: Attempt): void {
    unheard = isHeard ? 0 : unheard + 1;
    if (unheard >= UNHEARD_LIMIT) restUntilMs = clock.nowMs() + REST_MS;
  }

  function remember(id: string, outcome: Outcome): void {
    const times = (tried.get(id)?.times ?? 0) + 1;
    tried.delete(id);
    if (outcome.kind !== 'unknown') return;
    const now = clock.nowMs();
    tried.set(id, { times, notBeforeMs: now + Math.min(LONGEST_AGAIN_MS, FIRST_AGAIN_MS * 2 ** (times - 1)) });
    // Drops payments that reconciliation has ended since.
    for (const [other, { notBeforeMs }] of tried) {
      if (notBeforeMs + 2 * LONGEST_AGAIN_MS > now) break;
      tried.delete(other);
    }
  }

  /** Only the time of the request itself counts for `stallMs`, not the work after the answer. */
  function contextOf({ broadcast, hasCode }: Intent): AttemptContext {
    const limiter = broadcast ? again : fresh;
    return {
      signal,
      inTurn: async (ask) => {
        const mark = Symbol('question');
        if (!broadcast && !hasCode) asked.set(mark, clock.nowMs());
        try {
          return await limiter.run(signal, () => orAborted(ask(), signal));
        } finally {
          asked.delete(mark);
        }
      },
    };
  }

  async function work(intent: Intent): Promise<Outcome> {
    if (signal.aborted || clock.nowMs() < (tried.get(intent.id)?.notBeforeMs ?? 0)) return { kind: 'unknown' };
    try {
      const ended = await attempt(intent, contextOf(intent));
      if (!intent.broadcast && !intent.hasCode) judge(ended);
      remember(intent.id, ended.outcome);
      return ended.outcome;
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, payment: intent.id }, 'a settlement attempt failed');
      return { kind: 'unknown' };
    }
  }

  function tracked(intent: Intent): Promise<Outcome> {
    const promise = work(intent);
    running.add(promise);
    void promise.finally(() => running.delete(promise));
    return promise;
  }

  return {
    settle: (intents) => intents.map(tracked),
    unavailable: () => {
      const now = clock.nowMs();
      if (signal.aborted) return 'the service is stopping';
      if (now < restUntilMs) return 'the settling service cannot be reached';
      const oldest = Math.min(now, ...asked.values());
      return now - oldest > stallMs ? 'the settling service does not answer' : null;
    },
    refuses,
    stop: async () => {
      stopping.abort();
      await Promise.all(running);
    },
  };
}

interface ServiceSettlerOptions
  extends Pick<SettlerContext, 'noteBroadcast'>,
    Pick<RemoteSettlerOptions, 'client' | 'evidence' | 'isUsed' | 'hasCode' | 'usedBefore'> {
  extra: Record<string, unknown>;
  config: Pick<Config, 'network' | 'publicOrigin' | 'receiptPollMs' | 'settleWaitMs'>;
  token: Pick<TokenWatch, 'check'>;
}

export function createServiceSettler(
  common: Common,
  { extra, config, token, ...settler }: ServiceSettlerOptions,
): Settler {
  const { network, publicOrigin, receiptPollMs, settleWaitMs } = config;
  return createRemoteSettler(common, {
    ...settler,
    terms: { network: network.caip2, usdc: network.usdc, extra, publicOrigin },
    onUnsettled: () => void token.check(),
    pollMs: receiptPollMs,
    watchMs: settleWaitMs,
    stallMs: settleWaitMs,
  });
}
