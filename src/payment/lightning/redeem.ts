import { randomUUID } from 'node:crypto';
import { AppError, Unavailable } from '../../errors.ts';
import { type Clock, DAY_MS, nowSeconds } from '../../lib/clock.ts';
import { own } from '../../lib/untrusted.ts';
import type { Claim, LightningStore, NewClaim, ProofKey } from '../../store/ports/lightning.ts';
import type { RateSource } from '../../upstream/rates/bitcoin.ts';
import type { Sold } from '../call.ts';
import type { AnsweredChallenge, Credential, ProtocolName, QuotedInvoice, Receipt } from '../protocol.ts';
import { PaymentRefused } from '../refusal.ts';
import { decodeInvoice, type Invoice } from './bolt11.ts';
import type { RecentBuyers } from './issuance.ts';
import type { Issuer } from './issuer.ts';
import type { LightningCall, LightningRail } from './offers.ts';
import { priceMsat } from './offers.ts';
import { checkProof, type Proof } from './proof.ts';
import { afterPayment, type ServeGranted } from './serve-granted.ts';
import { LIGHTNING_NETWORKS, type LightningNetwork, lightningRequirement, SKEW_SECONDS } from './terms.ts';

// Sells the answer of a call for a presented proof. The proof is checked against our own record and claimed once for
// ever. Its claim grants one request for seven days, so a failure costs no more than another try. Under a lease the
// answer is made, stored (serve-granted.ts) and sent. A delivered claim gets the same bytes again; any other use is
// refused.

/** How long a granted claim can be redeemed. */
const REDEEM_MS = 7 * DAY_MS;
/** The scheme asks for an hour after the proof has expired. Our own sales are kept like every other payment. */
const KEEP_MS = 3650 * DAY_MS;

interface RedeemOptions {
  store: LightningStore;
  issuer: Issuer | null;
  verifyProof: VerifyProof;
  serve: ServeGranted;
  buyers: Pick<RecentBuyers, 'add'>;
  shared: boolean;
  clock: Clock;
  bootId: string;
}

/** `doubt`: why a shared node cannot confirm the payment now; null when it need not or has. */
interface Taken {
  readonly key: ProofKey;
  readonly claim: Claim;
  readonly doubt: AppError | null;
}

/** Throws PaymentRefused (402), or an AppError that says that the proof can still be used. */
export function createRedeem(options: RedeemOptions): LightningRail['sell'] {
  const { store, issuer, verifyProof, serve, buyers, shared, clock, bootId } = options;

  // On a shared node a third party may hold an unpaid preimage. Null: the node confirms. Throws when it denies.
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

  /** Throws PaymentRefused unless the claim grants a call and has not expired. */
  function granted(found: Claim | null): Claim {
    if (!found?.grant || found.grant.redeemUntil <= clock.nowMs()) throw new PaymentRefused('duplicate_settlement');
    return found;
  }

  // A proof must not expire because the node is away. So it is claimed anyway, and served once the node confirms it.
  async function take(call: LightningCall, credential: Credential): Promise<Taken> {
    const verified = await verifyProof(call, credential);
    const doubt = await doubtOf(verified, call.signal);
    const { key } = verified;
    // A request that loses the race is served as a later presentation, if the row grants it.
    const claim = (): NewClaim => claimOf(call, verified, credential.protocol, clock.nowMs());
    const isNew = !verified.claim && (await store.claim(claim())) === 'claimed';
    // While the node has not confirmed the payment, it may not have been made.
    if (isNew && !doubt) buyers.add(call.client);
    return { key, claim: granted(verified.claim ?? (await store.findClaim(key))), doubt };
  }

  async function deliver(call: LightningCall, { key, claim: current, doubt }: Taken): Promise<Sold> {
    if (doubt) throw doubt;
    const body = await serve(call, key, current, `${bootId}:${randomUUID()}`);
    return { body, receipt: receiptOf(key), at: current.claimedAt, onSent: () => serve.delivered(key) };
  }

  return async (call, credential) => {
    const taken = await take(call, credential).catch(passOn(credential.answered ? 'challenged' : 'unclaimed'));
    return deliver(call, taken).catch(passOn('granted'));
  };
}

/** The claim that grants a call. `now` in Unix milliseconds. */
function claimOf(
  { route }: LightningCall,
  { key, proof: { payTo, amountMsat, requestHash } }: VerifiedProof,
  protocol: ProtocolName,
  now: number,
): NewClaim {
  const grant = { requestHash, redeemUntil: now + REDEEM_MS, route, protocol };
  return { ...key, payTo, amountMsat, claimedAt: now, keepUntil: now + KEEP_MS, grant, account: null };
}

function receiptOf({ paymentHash, network }: ProofKey): Receipt {
  const transaction = Buffer.from(paymentHash).toString('hex');
  return { success: true, transaction, network: network as Receipt['network'] };
}

/** For a buyer whose sats are paid. Only a refusal of the proof itself says that it cannot be used here. */
function passOn(worth: Parameters<typeof afterPayment>[1]) {
  return (error: unknown): never => {
    throw error instanceof PaymentRefused ? error : afterPayment(error, worth);
  };
}

interface ProofVerifierOptions {
  store: LightningStore;
  issuer: Issuer | null;
  rates: RateSource;
  network: LightningNetwork;
  /** Whether other parties make invoices with the node's key too. */
  shared: boolean;
  clock: Clock;
}

const NO_HASH = new Uint8Array();
/** A signed challenge's invoice must be 1/2 of today's price or more on a shared node: the rate may fall by half. */
const LEAST_PART = 2n;

interface VerifiedProof {
  readonly key: ProofKey;
  readonly proof: Proof;
  readonly claim: Claim | null;
}

/** Throws PaymentRefused with the scheme's reason. Makes no claim. */
type VerifyProof = (call: LightningCall, credential: Credential) => Promise<VerifiedProof>;

interface Terms {
  readonly network: string;
  readonly amountMsat: bigint;
  readonly payTo: string;
}

/**
 * By our own record of the invoice: a quote of ours is valid even after the rate has changed, and a claimed proof is
 * checked as of its invoice. Where the record is deleted, our node's signature shows that the invoice is ours. Ours on
 * the challenge does not, as its key may have leaked; on a shared node both are needed.
 */
export function createProofVerifier({
  store,
  issuer,
  rates,
  network,
  shared,
  clock,
}: ProofVerifierOptions): VerifyProof {
  async function termsOf(
    call: LightningCall,
    key: ProofKey,
    claim: Claim | null,
    { amountMsat }: Invoice,
    answered: AnsweredChallenge | undefined,
  ): Promise<Terms> {
    const known = claim ?? (await store.findInvoice(key));
    if (known) return { ...known, payTo: Buffer.from(known.payTo).toString('hex') };
    // Under a shared key, only our own records and challenges separate our invoices from those of other parties.
    if (shared && !answered?.isSigned) throw new PaymentRefused('exact_lnbtc_payment_not_paid');
    const payTo = issuer?.payTo();
    // The buyer of an invoice that we may have issued must not pay again because our node is away.
    if (!payTo && answered?.isSigned) throw nodeUnknown();
    if (!payTo) throw new PaymentRefused('invalid_exact_lnbtc_invoice_payee_mismatch');
    // From here on the invoice must be of today's network. No other party signs with our own node's key.
    if (answered && !shared) return { network: network.id, amountMsat, payTo };
    // Without a record, for example after a restore from backup, our node's signature is enough, at today's price.
    const { rate } = await rates.current();
    const price = priceMsat(call.price, rate);
    // A challenge that we signed may be older than today's price. Below half of it, its key has leaked.
    const isOurs = answered !== undefined && amountMsat * LEAST_PART >= price;
    return { network: network.id, amountMsat: isOurs ? amountMsat : price, payTo };
  }

  return async (call, credential) => {
    const { accepted, payload, answered } = credential;
    const invoice = accepted ? own(own(accepted, 'extra'), 'invoice') : own(payload, 'invoice');
    const decoded = decodeInvoice(invoice);
    // The scheme's checks give the reason, before any check against our records.
    if (!decoded) throw new PaymentRefused(answered ? 'invalid_challenge' : unreadable(call, credential, network));
    if (answered) checkAnswered(answered, quotedInvoice(String(invoice), decoded), decoded, call);
    // The network of the signed invoice: a sale that is claimed or recorded is honoured after a change to the other.
    const sold = LIGHTNING_NETWORKS.find(({ currency }) => currency === decoded.currency) ?? network;
    const key = { network: sold.id, paymentHash: decoded.paymentHash };
    const found = await store.findClaim(key);
    const claim = found && isOfInvoice(found, decoded) ? found : null;
    if (claim && !grants(claim, call)) throw new PaymentRefused('duplicate_settlement');
    const terms = await termsOf(call, key, claim, decoded, answered);
    const requirement = lightningRequirement({ ...terms, binding: call.binding, invoice: String(invoice) });
    const verdict = checkProof({ accepted: accepted ?? requirement, payload }, requirement, {
      now: claim ? decoded.createdAt : asOf(decoded, answered, nowSeconds(clock)),
      skewSeconds: SKEW_SECONDS,
    });
    if (!verdict.ok) throw new PaymentRefused(verdict.reason);
    return { key, proof: verdict.proof, claim };
  };
}

// Throws PaymentRefused unless an unsigned challenge is for this invoice and request. Any client can make one up.
function checkAnswered(
  { isSigned, isFor }: AnsweredChallenge,
  invoice: QuotedInvoice,
  { descriptionHashes }: Invoice,
  { binding }: LightningCall,
): void {
  if (isSigned) return;
  const [requestHash = NO_HASH] = descriptionHashes;
  if (Buffer.compare(requestHash, binding.hash) !== 0 || !isFor(invoice)) throw new PaymentRefused('invalid_challenge');
}

/** 503: an invoice without a record cannot be told from another party's while the node's key is unknown. */
function nodeUnknown(): Unavailable {
  const detail = 'The Lightning node cannot be asked whether it made this invoice.';
  return new Unavailable('lightning_unavailable', detail, 60);
}

function quotedInvoice(text: string, { paymentHash, amountMsat, payee, createdAt, expirySeconds }: Invoice) {
  const payTo = Buffer.from(payee).toString('hex');
  return { text, paymentHash, amountMsat, payTo, expiresAt: createdAt + expirySeconds };
}

// Unix seconds. A late proof with a challenge is judged as of its invoice's expiry: the node was paid before.
function asOf({ createdAt, expirySeconds }: Invoice, answered: AnsweredChallenge | undefined, now: number): number {
  const expiresAt = createdAt + expirySeconds;
  return answered && now <= expiresAt + answered.lateSeconds ? Math.min(now, expiresAt) : now;
}

/** A facilitator's claim for another node was for another invoice with this hash; the store replaces it with ours. */
function isOfInvoice({ grant, payTo }: Claim, { payee }: Invoice): boolean {
  return grant !== null || Buffer.compare(payTo, payee) === 0;
}

/** A claim through the facilitator grants nothing here. One of ours grants exactly its request. */
function grants({ grant }: Claim, { binding }: LightningCall): boolean {
  return grant !== null && Buffer.compare(grant.requestHash, binding.hash) === 0;
}

// Amount and recipient are the payment's, as there is no record. No time is checked: the invoice is read first.
function unreadable({ binding }: LightningCall, credential: Credential, network: LightningNetwork): string {
  const { amount, payTo } = credential.accepted ?? {};
  const requirement = lightningRequirement({
    amountMsat: typeof amount === 'string' && /^[1-9][0-9]{0,17}$/.test(amount) ? BigInt(amount) : 1000n,
    payTo: typeof payTo === 'string' ? payTo : '',
    network: network.id,
    binding,
    invoice: 'x',
  });
  const verdict = checkProof(credential, requirement, { now: 0 });
  return verdict.ok ? 'invalid_exact_lnbtc_invoice_decode_failed' : verdict.reason;
}
