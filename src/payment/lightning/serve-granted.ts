import { AppError } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { setNewest } from '../../lib/set-newest.ts';
import type { Claim, LightningStore, ProofKey } from '../../store/ports/proofs.ts';
import { runEndpoint } from '../run-endpoint.ts';
import { openReply, type ReplyQuota, sealReply } from './kept-replies.ts';
import type { LightningOrder } from './offers.ts';
import { INVOICE_SECONDS, SKEW_SECONDS } from './terms.ts';

/** Added to the handler's time-out. A lease that is older belongs to a dead process. */
const LEASE_MARGIN_MS = 5000;

interface ServeGrantedOptions<S> {
  store: LightningStore;
  quota: ReplyQuota;
  sources: S;
  clock: Clock;
  handlerTimeoutMs: number;
  /** How long a delivered answer can be fetched again, in milliseconds. */
  keepMs: number;
  log: { warn(detail: object, message: string): void; error(detail: object, message: string): void };
}

/** Serves a granted claim. `delivered` notes that its bytes were sent. */
export interface ServeGranted<S> {
  (order: LightningOrder<S>, key: ProofKey, claim: Claim, holder: string): Promise<Uint8Array>;
  delivered(key: ProofKey): Promise<void>;
}

/**
 * Returns the answer of a granted claim. Once an answer is stored, every presentation gets it. Before that, one presentation at a time makes it:
 * 1. It takes the lease, or gets 409.
 * 2. The handler runs again, for an up-to-date answer. If it fails, or the buyer leaves, the reply kept with the invoice is used.
 * 3. Without a kept reply, the run does not end when the buyer leaves. If it fails, the claim waits for its next run: 1, 2, 4 … 60 s, with 503. So a
 *    buyer that always leaves early causes one run, with or without a kept reply.
 * 4. The answer is sealed and stored.
 * 5. The lease is released in every case.
 */
export function createServeGranted<S>(options: ServeGrantedOptions<S>): ServeGranted<S> {
  const { store, quota, sources, clock, handlerTimeoutMs, keepMs, log } = options;
  const failures = createFailedRuns(clock);

  async function stored(order: LightningOrder<S>, key: ProofKey): Promise<Uint8Array | null> {
    const sealed = await store.answer(key);
    return sealed && openReply(sealed, order.binding, key.paymentHash);
  }

  async function fresh(order: LightningOrder<S>, key: ProofKey): Promise<Uint8Array> {
    const { endpoint, params, binding } = order;
    const run = (signal: AbortSignal) =>
      runEndpoint(endpoint, params, { sources, timeoutMs: handlerTimeoutMs, signal });
    const sealed = await store.keptReply(key);
    const kept = sealed && openReply(sealed, binding, key.paymentHash);
    if (!kept) return runToItsEnd(key, run, failures);
    return run(order.signal).catch((error: unknown) => {
      log.warn({ err: error, endpoint: endpoint.path }, 'a paid run failed: the kept reply is delivered');
      return kept;
    });
  }

  async function serveUnderLease(order: LightningOrder<S>, key: ProofKey, holder: string): Promise<Uint8Array> {
    // Another request may have stored it between our read and our lease.
    const before = await stored(order, key);
    if (before) return before;
    // Its run may have failed meanwhile.
    failures.check(key);
    const body = await fresh(order, key);
    const sealed = sealReply(body, order.binding, key.paymentHash);
    if (await store.storeAnswer(key, holder, sealed)) {
      quota.answered(key.paymentHash, sealed.length);
      return body;
    }
    const theirs = await stored(order, key);
    if (!theirs) throw paymentInFlight();
    return theirs;
  }

  const serve = async (order: LightningOrder<S>, key: ProofKey, claim: Claim, holder: string): Promise<Uint8Array> => {
    const known = claim.grant?.answered ? await stored(order, key) : null;
    if (known) return known;
    failures.check(key);
    const now = clock.nowMs();
    if (!(await store.takeLease(key, holder, now, now + handlerTimeoutMs + LEASE_MARGIN_MS))) throw paymentInFlight();
    try {
      return await serveUnderLease(order, key, holder);
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

/** Runs the handler until it ends or its time is over, whether the buyer leaves or not. Nothing else could answer the next presentation. */
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

/** The wait after a claim's first failed run, in milliseconds. Each further failure doubles it. */
const FIRST_MS = 1000;
/** The longest wait between two runs of one claim, in milliseconds. */
const LONGEST_MS = 60_000;
/** About 2 MB at most. Beyond that, the claim that failed longest ago is dropped. */
const MAX_CLAIMS = 10_000;

/** The claims whose last run failed and left nothing to deliver. */
interface FailedRuns {
  /** Throws 503 `paid_run_failed` (`charged: "unknown"`, with the time that is left) while the claim must wait for its next run. */
  check(key: ProofKey): void;
  /** Notes one more failed run of a claim. */
  failed(key: ProofKey): void;
  /** Forgets a claim, because its answer was made. */
  succeeded(key: ProofKey): void;
}

/**
 * Limits the runs that one payment can cause while its handler fails: the wait between two runs is 1, 2, 4 … 60 s. Kept in this process's memory and
 * bounded. A restart forgets it, and processes do not share it.
 */
export function createFailedRuns(clock: Clock, maxClaims = MAX_CLAIMS): FailedRuns {
  const waits = new Map<string, { waitMs: number; untilMs: number }>();
  return {
    check(key) {
      const leftMs = (waits.get(nameOf(key))?.untilMs ?? 0) - clock.nowMs();
      if (leftMs > 0) throw mustWait(Math.ceil(leftMs / 1000));
    },
    failed(key) {
      const name = nameOf(key);
      const waitMs = Math.min(LONGEST_MS, 2 * (waits.get(name)?.waitMs ?? FIRST_MS / 2));
      setNewest(waits, name, { waitMs, untilMs: clock.nowMs() + waitMs }, maxClaims);
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
    'The last run for this payment failed a moment ago. The payment stays good for 7 days: present the same proof again after the time in Retry-After, never pay twice.';
  return new AppError(503, 'paid_run_failed', detail, { charged: 'unknown', retryAfterSeconds });
}

/** How long a proof can still be used after a failure. A claimed proof has seven days, as one with a challenge has. Another unclaimed one has its invoice's time. */
export const WORTH = {
  granted: 'The payment stays good for 7 days: present the same proof again, never pay twice.',
  unclaimed: `The payment was not taken yet: present the same proof again before its invoice is ${INVOICE_SECONDS + SKEW_SECONDS} seconds old, never pay twice.`,
  challenged: 'The payment was not taken yet: present the same proof again within 7 days, never pay twice.',
} as const;

/**
 * An error for a client that has paid: the same status and code, with how long the proof can still be used. An error that is no AppError stays 500
 * `internal`.
 */
export function afterPayment(error: unknown, worth: keyof typeof WORTH): AppError {
  const known = error instanceof AppError ? error : null;
  if (known?.charged === 'unknown') return known;
  const detail = known ? `${known.message} ${WORTH[worth]}` : WORTH[worth];
  const retryAfterSeconds = known?.retryAfterSeconds ?? 1;
  const options = { charged: 'unknown' as const, retryAfterSeconds, members: known?.members, cause: error };
  return new AppError(known?.status ?? 500, known?.code ?? 'internal', detail, options);
}

/**
 * An error for a client whose proof was refused, where no new offer can be made: the offer's own status and code, with the reason of the refusal. The
 * proof may be paid and good for another request, so the error does not say that nothing is charged.
 */
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
