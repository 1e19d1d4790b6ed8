import type { Clock } from '../../lib/clock.ts';
import type { Evidence } from './evidence.ts';
import type { FacilitatorClient } from './facilitator-client.ts';
import { type Attempt, type AttemptContext, createRemoteQueue } from './facilitator-queue.ts';
import type { SettleReply } from './facilitator-reply.ts';
import { type RequestTerms, settleRequest } from './facilitator-request.ts';
import { type Intent, type Outcome, REVERTED, type Settler } from './settler.ts';
import { HANDED_OVER } from './transaction-id.ts';

interface RemoteSettlerOptions {
  client: Pick<FacilitatorClient, 'settle'>;
  /** Where the truth is looked up: the chain's logs, or the Gateway's transfers. */
  evidence: Pick<Evidence, 'lookup'>;
  terms: RequestTerms;
  /** Made durable before anything leaves; returns the ids that still await settlement, the others must not be sent. */
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<ReadonlySet<string>>;
  clock: Clock;
  /** Between the first two looks at the evidence; later ones are further apart. */
  pollMs: number;
  /** How long the evidence is watched after an answer. */
  watchMs: number;
  /** A job that waits longer than this stops the sale of more. */
  stallMs: number;
  log: { info(detail: object, message: string): void; warn(detail: object, message: string): void };
}

const LONGEST_POLL_MS = 2000;

/**
 * A settler over somebody else's facilitator. What it says moves nothing here:
 * 1. the handing over is on disk before the authorization leaves;
 * 2. one request, bounded in time, never repeated within an attempt;
 * 3. a refusal that comes before any broadcast, of an authorization that was never handed out before and is still unused:
 *    failed, and good to be used again;
 * 4. everything else is watched in the evidence until it shows an end, and is unknown where it does not.
 */
export function createRemoteSettler(options: RemoteSettlerOptions): Settler {
  const { client, evidence, terms, noteBroadcast, clock, pollMs, watchMs, stallMs, log } = options;
  const open: Outcome = { kind: 'unknown' };

  async function look({ authorization, fromBlock }: Intent): Promise<Outcome | { kind: 'open' }> {
    return evidence.lookup(authorization, fromBlock).catch((error) => {
      log.warn({ err: error }, 'the evidence of a settlement could not be read');
      return open;
    });
  }

  async function watch(intent: Intent, signal: AbortSignal): Promise<Outcome> {
    const until = clock.nowMs() + watchMs;
    for (let pause = pollMs; !signal.aborted; pause = Math.min(pause * 2, LONGEST_POLL_MS)) {
      const verdict = await look(intent);
      if (verdict.kind === 'settled' || verdict.kind === 'failed') return verdict;
      if (clock.nowMs() + pause >= until) break;
      await clock.sleep(pause, signal).catch(() => {});
    }
    return open;
  }

  /** Null when the row does not wait for a settlement any more. */
  async function handOver({ id, authorization }: Intent, signal: AbortSignal): Promise<SettleReply | null> {
    const waiting = await noteBroadcast([{ id, transaction: HANDED_OVER }]);
    return waiting.has(id) ? client.settle(settleRequest(authorization, terms), id, signal) : null;
  }

  async function attempt(intent: Intent, { signal, inTurn }: AttemptContext): Promise<Attempt> {
    const { id, broadcast } = intent;
    const reply = await inTurn(() => handOver(intent, signal));
    if (reply === null) return { outcome: open, clear: true };
    // Only where it is said: a resumed row may have been on its way for long.
    if (reply.kind === 'refused' && broadcast === false) {
      log.info({ payment: id, reason: reply.reason }, 'the facilitator refused a payment');
      const verdict = await look(intent);
      return { outcome: verdict.kind === 'open' ? { kind: 'failed', reason: REVERTED } : verdict, clear: true };
    }
    const outcome = await watch(intent, signal);
    if (outcome.kind === 'unknown') {
      const said = 'detail' in reply ? reply.detail : reply.kind;
      log.warn({ payment: id, said }, 'nothing shows what the facilitator made of a payment');
    }
    return { outcome, clear: outcome.kind !== 'unknown' && reply.kind !== 'unclear' };
  }

  return createRemoteQueue({ attempt, clock, stallMs, log });
}
