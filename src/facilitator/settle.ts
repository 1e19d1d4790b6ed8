import { nowSeconds } from '../lib/clock.ts';
import type { Common } from '../lib/common.ts';
import { bytesToHex } from '../lib/hex.ts';
import { own } from '../lib/untrusted.ts';
import { checkProof, LNBTC_REFUSALS, type Proof } from '../payment/lightning/proof.ts';
import { SKEW_SECONDS } from '../payment/lightning/terms.ts';
import {
  type ClaimAccount,
  KNOWN_DAYS,
  KNOWN_WINDOW_DAYS,
  type LightningStore,
  type NewClaim,
  type ReachedCap,
} from '../store/ports/lightning.ts';
import type { Barrier, Counts, Limits } from './limits.ts';

// A settle call, in this order: the client's limits; the body's shape; the proof, in the scheme's order; the claim.
// A failure before the claim consumes nothing. A success is on disk before it is answered.

/** The scheme forbids deleting a claim earlier than this after its proof has expired. */
const RETENTION_SECONDS = 3600;
/** Our own routes honour a proof for seven days after its invoice. One more, for clocks that were wrong at a prune. */
const MARGIN_SECONDS = 8 * 86_400;
/** A store that does not answer is usually back after the next checkpoint or restart. */
const STORE_RETRY_SECONDS = 5;

/** x402's answer to a settle call. It has no `payer`, because nothing shows who paid a Lightning invoice. */
type SettleBody =
  | { readonly success: true; readonly transaction: string; readonly network: string }
  | {
      readonly success: false;
      readonly errorReason: string;
      readonly message: string;
      readonly transaction: '';
      readonly network: string;
    };

export interface SettleAnswer {
  readonly status: number;
  readonly body: SettleBody;
  readonly retryAfterSeconds?: number;
}

/** Neither step rejects. */
interface Settle {
  /** Counts the client's call before any of the body is read. Null admits it. */
  admit(client: string): Promise<SettleAnswer | null>;
  settle(body: unknown, client: string): Promise<SettleAnswer>;
}

export function createSettle(
  { clock, log }: Common,
  store: Pick<LightningStore, 'claim'>,
  limits: Limits,
  counts: Counts,
  maxTimeoutSeconds: number,
): Settle {
  function storeUnavailable(error: unknown, network = ''): SettleAnswer {
    log.error({ err: error }, 'the store of claims did not answer; nothing was settled');
    return { ...refusal(503, 'replay_store_unavailable', { network }), retryAfterSeconds: STORE_RETRY_SECONDS };
  }

  async function claim(proof: Proof, client: string): Promise<SettleAnswer> {
    const { network, paymentHash } = proof;
    const outcome = await store.claim(claimOf(proof, limits.account(client, proof.payTo), clock.nowMs()));
    switch (outcome) {
      case 'claimed':
        counts.claimed();
        return { status: 200, body: { success: true, transaction: bytesToHex(paymentHash).slice(2), network } };
      case 'duplicate':
        return refusal(200, 'duplicate_settlement', { network });
      default:
        return blocked(limits.capReached(outcome), network);
    }
  }

  async function checkAndClaim(body: unknown, client: string): Promise<SettleAnswer> {
    const network = networkOf(body);
    const [payload, requirement] = [own(body, 'paymentPayload'), own(body, 'paymentRequirements')];
    const fault = faultOf(body);
    if (fault !== null) return refusal(400, 'invalid_request', { network, message: fault });
    const options = { now: nowSeconds(clock), skewSeconds: SKEW_SECONDS, maxTimeoutSeconds };
    const verdict = checkProof(payload, requirement, options);
    if (!verdict.ok) return refusal(200, verdict.reason, { network });
    return claim(verdict.proof, client).catch((error) => storeUnavailable(error, network));
  }

  return {
    admit: (client) =>
      limits.barrier(client).then(
        (barrier) => barrier && blocked(barrier),
        (error) => storeUnavailable(error),
      ),
    settle: (body, client) =>
      checkAndClaim(body, client).catch((error: unknown) => {
        log.error({ at: framesOf(error) }, 'a settle call failed on a bug; nothing was settled');
        return refusal(500, 'unexpected_settle_error', { network: networkOf(body) });
      }),
  };
}

export function networkOf(body: unknown): string {
  const network = own(own(body, 'paymentRequirements'), 'network');
  return typeof network === 'string' ? network : '';
}

function faultOf(body: unknown): string | null {
  if (!isRecord(body)) return `The body is no JSON object. Send ${CALL}.`;
  if (own(body, 'x402Version') !== 2) return 'x402Version is not 2. Send x402Version 2.';
  const wrong = ['paymentPayload', 'paymentRequirements'].find((member) => !isRecord(own(body, member)));
  return wrong === undefined ? null : `${wrong} is missing or no JSON object. Send ${CALL}.`;
}

const CALL = '{ "x402Version": 2, "paymentPayload": { … }, "paymentRequirements": { … } }';

function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function claimOf(proof: Proof, account: ClaimAccount, now: number): NewClaim {
  const { network, paymentHash, payTo, amountMsat, createdAt, expirySeconds } = proof;
  const keepSeconds = createdAt + expirySeconds + SKEW_SECONDS + RETENTION_SECONDS + MARGIN_SECONDS;
  const key = { network, paymentHash, payTo, amountMsat };
  return { ...key, claimedAt: now, keepUntil: keepSeconds * 1000, grant: null, account };
}

/** An error's stack frames without its message, which may quote the body, and with it a preimage. */
function framesOf(error: unknown): string[] {
  const lines = error instanceof Error ? (error.stack ?? '').split('\n') : [];
  return lines.map((line) => line.trim()).filter((line) => line.startsWith('at '));
}

function blocked(barrier: Barrier, network = ''): SettleAnswer {
  const { status, reason, retryAfterSeconds } = barrier;
  const message = reason === 'daily_cap_reached' ? usedUp(barrier.cap) : MESSAGES[reason];
  return { status, body: refused(reason, message, network), retryAfterSeconds };
}

/** A refusal in x402's shape. `message` is for a call of which more is known than the reason. */
export function refusal(
  status: number,
  errorReason: FacilitatorReason,
  { network = '', message = MESSAGES[errorReason] }: { network?: string; message?: string } = {},
): SettleAnswer {
  return { status, body: refused(errorReason, message, network) };
}

function refused(errorReason: string, message: string, network: string): SettleBody {
  return { success: false, errorReason, message, transaction: '', network };
}

const OWN_MESSAGES = {
  invalid_request: `The body cannot be read. Send ${CALL} as JSON.`,
  body_too_large: 'The body is too large. Send at most 64 KiB.',
  url_too_long: 'The URL is too long. POST the body to /facilitator/settle.',
  rate_limited:
    'This client has sent too many settle calls in this minute. Wait for Retry-After, and settle the same proof again.',
  replay_store_unavailable:
    'The store of claims does not answer. Settle the same proof again after Retry-After. ' +
    'If that answer is duplicate_settlement, this call has perhaps claimed it.',
  unexpected_settle_error: 'This is a fault of the service. Nothing was claimed: settle the same proof again.',
};

export const WHAT_IS_KNOWN = `claims on ${KNOWN_DAYS} of the ${KNOWN_WINDOW_DAYS} days before, by two clients`;

const USED_UP: Record<ReachedCap, string> = {
  daily_cap: 'The claims of this day are used up, for all payees.',
  client_cap: 'This client has used up its tenth of this day. Other clients may settle.',
  payee_cap: 'This payee has used up its twentieth of this day.',
  known_cap:
    "This payee has used up its equal part of the known payees' half of this day, and the other half is used up too.",
  open_cap:
    'The half of this day that is open to every payee is used up. ' +
    `The other half is for known payees only, with ${WHAT_IS_KNOWN}.`,
};

export function usedUp(cap: ReachedCap): string {
  return `${USED_UP[cap]} Nothing was claimed: wait for Retry-After, and settle the same proof again.`;
}

/** By reason, for a seller. A buyer reads other words about a spent proof at our own routes. */
export const MESSAGES = {
  ...LNBTC_REFUSALS,
  ...OWN_MESSAGES,
  duplicate_settlement:
    'This proof was claimed before. If you settled it yourself and have not served it, serve; otherwise refuse.',
};

type FacilitatorReason = keyof typeof MESSAGES;
