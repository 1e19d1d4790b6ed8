import { AppError } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Common } from '../../lib/common.ts';
import { boundedMap } from '../../lib/limits/count.ts';
import type { Claim, LightningStore, ProofKey } from '../../store/ports/lightning.ts';
import { openReply, type ReplyQuota, sealReply } from './kept-replies.ts';
import type { LightningCall } from './offers.ts';
import { INVOICE_SECONDS, SKEW_SECONDS } from './terms.ts';

// Delivers the answer of a granted claim. Once stored, every presentation gets it. Before that, one at a time makes it,
// under a lease (else 409): the handler runs again, for an up-to-date answer. If it fails or the buyer leaves, the
// reply kept with the invoice is used. Without one the run does not end when the buyer leaves; if it fails, the claim
// waits 1, 2, 4 … 60 s, with 503. So a buyer that always leaves early causes one run. Every error says how long the
// proof stays good.

/** Added to the handler's time-out. A lease that is older belongs to a dead process. */
const LEASE_MARGIN_MS = 5000;

export interface ServeGranted {
  (call: LightningCall, key: ProofKey, claim: Claim, holder: string): Promise<Uint8Array>;
  delivered(key: ProofKey): Promise<void>;
}

/** `keepMs`: milliseconds after the delivery in which an answer can be fetched again. */
export function createServeGranted(
  { clock, log }: Common,
  store: LightningStore,
  quota: ReplyQuota,
  handlerTimeoutMs: number,
  keepMs: number,
): ServeGranted {
  const failures = createFailedRuns(clock);

  async function stored(call: LightningCall, key: ProofKey): Promise<Uint8Array | null> {
    const sealed = await store.answer(key);
    return sealed && openReply(sealed, call.binding, key.paymentHash);
  }

  async function fresh(call: LightningCall, key: ProofKey): Promise<Uint8Array> {
    const { endpoint, binding } = call;
    const run = (signal: AbortSignal) => call.run('sale', signal);
    const sealed = await store.keptReply(key);
    const kept = sealed && openReply(sealed, binding, key.paymentHash);
    if (!kept) return runToItsEnd(key, run, failures);
    return run(call.signal).catch((error: unknown) => {
      log.warn({ err: error, endpoint: endpoint.path }, 'a paid run failed: the kept reply is delivered');
      return kept;
    });
  }

  async function serveUnderLease(call: LightningCall, key: ProofKey, holder: string): Promise<Uint8Array> {
    // Another request may have stored it, or its run may have failed, between our read and our lease.
    const before = await stored(call, key);
    if (before) return before;
    failures.check(key);
    const body = await fresh(call, key);
    const sealed = sealReply(body, call.binding, key.paymentHash);
    if (await store.storeAnswer(key, holder, sealed)) {
      quota.answered(key.paymentHash, sealed.length);
      return body;
    }
    const theirs = await stored(call, key);
    if (!theirs) throw paymentInFlight();
    return theirs;
  }

  const serve = async (call: LightningCall, key: ProofKey, claim: Claim, holder: string): Promise<Uint8Array> => {
    const known = claim.grant?.answered ? await stored(call, key) : null;
    if (known) return known;
    failures.check(key);
    const now = clock.nowMs();
    if (!(await store.takeLease(key, holder, now, now + handlerTimeoutMs + LEASE_MARGIN_MS))) throw paymentInFlight();
    try {
      return await serveUnderLease(call, key, holder);
    } finally {
      const left = (err: unknown) => log.error({ err }, 'a lease was not released; it ends by itself');
      await store.releaseLease(key, holder).catch(left);
    }
  };

  return Object.assign(serve, {
    delivered: async (key: ProofKey) => {
      const now = clock.nowMs();
      await store.delivered(key, now, now + keepMs);
    },
  });
}

/** Runs to its end whether the buyer leaves or not: nothing else could answer the next presentation. */
async function runToItsEnd(
  key: ProofKey,
  run: (signal: AbortSignal) => Promise<Uint8Array>,
  failures: FailedRuns,
): Promise<Uint8Array> {
  try {
    const body = await run(new AbortController().signal);
    failures.succeeded(key);
    return body;
  } catch (error) {
    failures.failed(key);
    throw error;
  }
}

/** The wait after a claim's first failed run. Each further failure doubles it. */
const FIRST_MS = 1000;
const LONGEST_MS = 60_000;
/** About 2 MB. Beyond that, the claim that failed longest ago is dropped. */
const MAX_CLAIMS = 10_000;

interface FailedRuns {
  /** Throws 503 `paid_run_failed` (`charged: "unknown"`, with the time left) while the claim must wait. */
  check(key: ProofKey): void;
  failed(key: ProofKey): void;
  succeeded(key: ProofKey): void;
}

/** Limits the runs that one payment can cause, in this process's memory: a restart forgets them. */
export function createFailedRuns(clock: Clock, maxClaims = MAX_CLAIMS): FailedRuns {
  const waits = boundedMap<string, { waitMs: number; untilMs: number }>(maxClaims);
  return {
    check(key) {
      const leftMs = (waits.peek(nameOf(key))?.untilMs ?? 0) - clock.nowMs();
      if (leftMs > 0) throw mustWait(Math.ceil(leftMs / 1000));
    },
    failed(key) {
      const name = nameOf(key);
      const waitMs = Math.min(LONGEST_MS, 2 * (waits.peek(name)?.waitMs ?? FIRST_MS / 2));
      waits.set(name, { waitMs, untilMs: clock.nowMs() + waitMs });
    },
    succeeded(key) {
      waits.delete(nameOf(key));
    },
  };
}

function nameOf({ network, paymentHash }: ProofKey): string {
  return `${network} ${Buffer.from(paymentHash).toString('base64')}`;
}

function mustWait(retryAfterSeconds: number): AppError {
  const detail =
    'The last run for this payment failed a moment ago. The payment stays good for 7 days: ' +
    'present the same proof again after the time in Retry-After, never pay twice.';
  return new AppError(503, 'paid_run_failed', detail, { charged: 'unknown', retryAfterSeconds });
}

/** How long a proof can still be used after a failure. */
export const WORTH = {
  granted: 'The payment stays good for 7 days: present the same proof again, never pay twice.',
  unclaimed:
    'The payment was not taken yet: present the same proof again ' +
    `before its invoice is ${INVOICE_SECONDS + SKEW_SECONDS} seconds old, never pay twice.`,
  challenged: 'The payment was not taken yet: present the same proof again within 7 days, never pay twice.',
} as const;

/** The same status and code, with how long the proof can still be used. A bug stays 500 `internal`. */
export function afterPayment(error: unknown, worth: keyof typeof WORTH): AppError {
  const known = error instanceof AppError ? error : null;
  if (known?.charged === 'unknown') return known;
  const detail = known ? `${known.message} ${WORTH[worth]}` : WORTH[worth];
  const retryAfterSeconds = known?.retryAfterSeconds ?? 1;
  const options = { charged: 'unknown' as const, retryAfterSeconds, members: known?.members, cause: error };
  return new AppError(known?.status ?? 500, known?.code ?? 'internal', detail, options);
}

/** Of a refused proof, when no offer can be made. It may be good for another request: `charged: "unknown"`. */
export function refusedWithoutOffer(error: unknown, reason: string): AppError {
  const known = error instanceof AppError ? error : null;
  const why = `The payment was refused: ${reason}. No new offer can be made now`;
  const retryAfterSeconds = known?.retryAfterSeconds ?? 1;
  const detail = known ? `${why}: ${known.message}` : `${why}.`;
  return new AppError(known?.status ?? 500, known?.code ?? 'internal', detail, {
    charged: 'unknown',
    retryAfterSeconds,
    members: known?.members,
    cause: error,
  });
}

/** 409: another presentation of the same claim is being served. */
export function paymentInFlight(): AppError {
  const detail = 'This payment is being served on another connection; present it again to get the answer.';
  return new AppError(409, 'payment_in_flight', detail, { charged: 'unknown', retryAfterSeconds: 1 });
}
