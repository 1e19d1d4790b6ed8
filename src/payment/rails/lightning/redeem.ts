import { randomUUID } from 'node:crypto';
import { pathOn } from '../../../catalogue/paths.ts';
import { AppError, Unavailable } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Claim, LightningStore, NewClaim, ProofKey } from '../../../store/ports/proofs.ts';
import type { Sold } from '../../counter.ts';
import type { Credential, ProtocolName, Receipt } from '../../protocol.ts';
import { PaymentRefused } from '../../refusal.ts';
import type { Issuer } from './issuer.ts';
import type { LightningOrder } from './order.ts';
import { afterPayment } from './paid-errors.ts';
import type { RecentBuyers } from './recent-buyers.ts';
import type { ServeGranted } from './serve-granted.ts';
import type { VerifiedProof, VerifyProof } from './verify-proof.ts';

const DAY_MS = 86_400_000;
/** How long a granted claim can be redeemed. */
const REDEEM_MS = 7 * DAY_MS;
/** The scheme requires a claim to be kept for an hour after its proof has expired. Our own sales are kept like every other payment. */
const KEEP_MS = 3650 * DAY_MS;

interface RedeemOptions<S> {
  store: LightningStore;
  issuer: Issuer | null;
  verifyProof: VerifyProof;
  serve: ServeGranted<S>;
  /** Notes each client whose proof is claimed. */
  buyers: Pick<RecentBuyers, 'add'>;
  shared: boolean;
  clock: Clock;
  /** Names this process in leases. */
  bootId: string;
}

/** A granted claim of the order. `doubt`: why a shared node cannot confirm the payment now; null when it need not or has. */
interface Taken {
  readonly key: ProofKey;
  readonly claim: Claim;
  readonly doubt: AppError | null;
}

/** Sells the answer of an order for a presented proof. Throws PaymentRefused (402), or an AppError that says that the proof can still be used. */
export type Redeem<S> = (order: LightningOrder<S>, credential: Credential) => Promise<Sold>;

/**
 * Serves a paid request on this rail, in this order:
 * 1. The header is decoded.
 * 2. The proof is checked against our own record.
 * 3. The proof is claimed, once for ever. The claim grants the request.
 * 4. Under a lease, the answer is made and stored.
 * 5. The answer is sent.
 * A request with a granted claim continues at 4, for seven days. A delivered claim gets the same bytes again. Any other use is refused.
 */
export function createRedeem<S>(options: RedeemOptions<S>): Redeem<S> {
  const { store, issuer, verifyProof, serve, buyers, shared, clock, bootId } = options;

  /**
   * On a shared node a third party may hold the preimage of an invoice that was never paid. So the node's records decide. Throws when they deny the
   * payment. Returns null when they confirm it, otherwise why they cannot be read.
   */
  async function doubtOf({ key, claim: known }: VerifiedProof, signal: AbortSignal): Promise<AppError | null> {
    if (!shared || known?.grant?.answered) return null;
    if (!issuer)
      return new Unavailable('lightning_unavailable', 'The node that has the payment is not configured.', 60);
    try {
      if (await issuer.isPaid(key.paymentHash, signal)) return null;
    } catch (error) {
      if (error instanceof AppError) return error;
      throw error;
    }
    throw new PaymentRefused('exact_lnbtc_payment_not_paid');
  }

  /** Returns the claim if it grants this order and has not expired. Throws PaymentRefused otherwise. */
  function granted(found: Claim | null): Claim {
    if (!found?.grant || found.grant.redeemUntil <= clock.nowMs()) throw new PaymentRefused('duplicate_settlement');
    return found;
  }

  /**
   * Steps 2 and 3. A proof must not expire because the node is away. So the proof is claimed anyway, and served once the node has confirmed the
   * payment.
   */
  async function take(order: LightningOrder<S>, credential: Credential): Promise<Taken> {
    const verified = await verifyProof(order, credential);
    const doubt = await doubtOf(verified, order.signal);
    const { key } = verified;
    // A request that loses the race is served as a later presentation, if the row grants it.
    const claim = (): NewClaim => claimOf(order, verified, credential.protocol, clock.nowMs());
    const isNew = !verified.claim && (await store.claim(claim())) === 'claimed';
    // While the node has not confirmed the payment, it may not have been made.
    if (isNew && !doubt) buyers.add(order.client);
    return { key, claim: granted(verified.claim ?? (await store.findClaim(key))), doubt };
  }

  async function deliver(order: LightningOrder<S>, { key, claim: current, doubt }: Taken): Promise<Sold> {
    if (doubt) throw doubt;
    const body = await serve(order, key, current, `${bootId}:${randomUUID()}`);
    return { body, receipt: receiptOf(key), at: current.claimedAt, onSent: () => serve.delivered(key) };
  }

  return async (order, credential) => {
    const taken = await take(order, credential).catch(passOn(credential.answered ? 'challenged' : 'unclaimed'));
    return deliver(order, taken).catch(passOn('granted'));
  };
}

/** The claim that grants an order. `now` in Unix milliseconds. */
function claimOf(
  { endpoint }: LightningOrder<never>,
  { key, proof: { payTo, amountMsat, requestHash } }: VerifiedProof,
  protocol: ProtocolName,
  now: number,
): NewClaim {
  const grant = { requestHash, redeemUntil: now + REDEEM_MS, route: pathOn(endpoint, 'lightning'), protocol };
  return { ...key, payTo, amountMsat, claimedAt: now, keepUntil: now + KEEP_MS, grant, account: null };
}

function receiptOf({ paymentHash, network }: ProofKey): Receipt {
  const transaction = Buffer.from(paymentHash).toString('hex');
  return { success: true, transaction, network: network as Receipt['network'] };
}

/** Rethrows an error for a buyer whose sats are already paid. Only a refusal of the proof itself says that the proof cannot be used here. */
function passOn(worth: Parameters<typeof afterPayment>[1]) {
  return (error: unknown): never => {
    throw error instanceof PaymentRefused ? error : afterPayment(error, worth);
  };
}
