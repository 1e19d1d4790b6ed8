import type { Clock } from '../../../lib/clock.ts';
import type { Claim, LightningStore, ProofKey } from '../../../store/ports/proofs.ts';
import { runEndpoint } from '../../run-endpoint.ts';
import { createFailedRuns, type FailedRuns } from './failed-runs.ts';
import type { LightningOrder } from './order.ts';
import { paymentInFlight } from './paid-errors.ts';
import type { ReplyQuota } from './reply-quota.ts';
import { openReply, sealReply } from './seal.ts';

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
