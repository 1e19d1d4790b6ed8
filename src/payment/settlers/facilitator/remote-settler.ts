import { type Clock, nowSeconds } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { Authorization } from '../../authorization.ts';
import type { Evidence } from '../../evm/evidence.ts';
import { createPayerBans } from '../../evm/payer-bans.ts';
import type { Verdict } from '../../settler.ts';
import { ALREADY_USED, type Intent, type Outcome, REVERTED, type Settler } from '../../settler.ts';
import { HANDED_OVER } from '../../transaction-id.ts';
import type { FacilitatorClient } from './client.ts';
import { type Attempt, type AttemptContext, createRemoteQueue } from './queue.ts';
import type { SettleReply } from './reply.ts';
import { type RequestTerms, settleRequest } from './request.ts';

interface RemoteSettlerOptions {
  client: Pick<FacilitatorClient, 'settle'>;
  /** Where the truth is looked up: the chain's logs, or the Gateway's transfers, which name no transaction when they settle. */
  evidence: Pick<Evidence, 'lookup'> & Partial<Pick<Evidence, 'paidIn'>>;
  /**
   * Whether an authorization is used, by a read that many share: while it is not, the evidence has nothing to tell. Null where such a read is
   * not to be had.
   */
  isUsed: ((authorization: Authorization) => Promise<boolean>) | null;
  terms: RequestTerms;
  /**
   * Looks just before a new payment is handed over whether it was used before, which nothing of ours can have done; a reason ends it. Null where
   * the evidence itself tells one's own payments from those of another ledger.
   */
  usedBefore: ((intent: Intent) => Promise<string | null>) | null;
  /** Made durable before anything leaves; returns the ids that still await settlement, the others must not be sent. */
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<ReadonlySet<string>>;
  /** Called when the facilitator answered for a plain account's payment and nothing moved. The token may be paused for every payer. */
  onUnsettled(): void;
  clock: Clock;
  /** Between the first two looks at the evidence; later ones are further apart. */
  pollMs: number;
  /** How long the evidence is watched after an answer. */
  watchMs: number;
  /** A question that waits longer than this stops the sale of more. */
  stallMs: number;
  log: { info(detail: object, message: string): void; warn(detail: object, message: string): void };
}

const LONGEST_POLL_MS = 2000;
const TRANSACTION = /^0x[0-9a-fA-F]{64}$/;
const OPEN: Outcome = { kind: 'unknown' };

/**
 * A settler over somebody else's facilitator. What it says moves nothing here:
 * 1. a payment that was used before it was ever handed over is another ledger's, and ends;
 * 2. the handing over is on disk before the authorization leaves;
 * 3. one request, bounded in time, never repeated within an attempt;
 * 4. a refusal that comes before any broadcast, of an authorization that was never handed out before and is still unused:
 *    failed, and good to be used again;
 * 5. everything else is watched in the evidence until it shows an end, and is unknown where it does not. A transaction that the facilitator
 *    names is read first: its receipt proves a payment with one request, and a wrong name proves nothing.
 * Bans for a day an account with code whose settlement is answered and moves nothing: it has nothing at stake, and every try costs.
 */
export function createRemoteSettler(options: RemoteSettlerOptions): Settler {
  const { client, evidence, terms, usedBefore, noteBroadcast, clock, pollMs, watchMs, stallMs, log } = options;
  const bans = createPayerBans(clock);

  async function look({ authorization, fromBlock }: Intent): Promise<Verdict> {
    return evidence.lookup(authorization, fromBlock).catch((error) => {
      log.warn({ err: error }, 'the evidence of a settlement could not be read');
      return OPEN;
    });
  }

  async function watch(intent: Intent, reply: SettleReply, signal: AbortSignal): Promise<Outcome> {
    const until = clock.nowMs() + watchMs;
    for (let pause = pollMs; !signal.aborted; pause = Math.min(pause * 2, LONGEST_POLL_MS)) {
      const named = await readNamed(evidence, intent, reply);
      const verdict = named ?? ((await isStillOpen(options, intent)) ? OPEN : await look(intent));
      if (verdict.kind === 'settled' || verdict.kind === 'failed') return verdict;
      if (clock.nowMs() + pause >= until) break;
      await clock.sleep(pause, signal).catch(() => {});
    }
    return OPEN;
  }

  /** Null when the row does not wait for a settlement any more. */
  async function handOver({ id, authorization }: Intent, signal: AbortSignal): Promise<SettleReply | null> {
    const waiting = await noteBroadcast([{ id, transaction: HANDED_OVER }]);
    return waiting.has(id) ? client.settle(settleRequest(authorization, terms), id, signal) : null;
  }

  async function attempt(intent: Intent, { signal, inTurn }: AttemptContext): Promise<Attempt> {
    const { id, broadcast } = intent;
    const used = broadcast || !usedBefore ? null : await usedBefore(intent);
    if (used !== null) return { outcome: { kind: 'failed', reason: used }, isHeard: true };
    const reply = await inTurn(() => handOver(intent, signal));
    if (reply === null) return { outcome: OPEN, isHeard: true };
    const isHeard = reply.kind !== 'unclear' || !reply.isTransport;
    // On the first handing over "used" cannot mean us: another ledger has used the nonce since the check.
    if (reply.kind === 'used' && usedBefore && broadcast === false)
      return { outcome: { kind: 'failed', reason: ALREADY_USED }, isHeard };
    // Only on the first handing over. A resumed row may have been broadcast by the facilitator before.
    if (reply.kind === 'refused' && broadcast === false) {
      log.info({ payment: id, reason: reply.reason }, 'the facilitator refused a payment');
      return { outcome: await outcomeOfRefusal(intent), isHeard };
    }
    const outcome = await watch(intent, reply, signal);
    if (outcome.kind !== 'settled') noteUnsettled(intent, reply, isHeard);
    return { outcome, isHeard };
  }

  async function outcomeOfRefusal(intent: Intent): Promise<Outcome> {
    const verdict = await look(intent);
    return verdict.kind === 'open' ? { kind: 'failed', reason: REVERTED } : verdict;
  }

  function noteUnsettled({ id, hasCode, authorization }: Intent, reply: SettleReply, isHeard: boolean): void {
    const said = 'detail' in reply ? reply.detail : reply.kind;
    log.warn({ payment: id, said }, 'nothing shows what the facilitator made of a payment');
    if (!isHeard) return;
    if (hasCode) bans.add(bytesToHex(authorization.from));
    else options.onUnsettled();
  }

  const refuses = (payer: Uint8Array) => (bans.has(bytesToHex(payer)) ? 'its settlements move nothing' : null);
  return createRemoteQueue({ attempt, refuses, clock, stallMs, log });
}

/** What the transaction shows that the facilitator names; null without one, and where it does not show that it paid. */
async function readNamed(
  { paidIn }: RemoteSettlerOptions['evidence'],
  { authorization }: Intent,
  reply: SettleReply,
): Promise<Outcome | null> {
  if (reply.kind !== 'accepted' || !TRANSACTION.test(reply.transaction) || !paidIn) return null;
  return paidIn(authorization, reply.transaction as `0x${string}`).catch(() => null);
}

/** Only the evidence tells how one ended that is used, or has run out. */
async function isStillOpen({ isUsed, clock }: RemoteSettlerOptions, { authorization }: Intent): Promise<boolean> {
  if (!isUsed || BigInt(nowSeconds(clock)) >= authorization.validBefore) return false;
  return !(await isUsed(authorization).catch(() => true));
}
