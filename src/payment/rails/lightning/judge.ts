import type { Clock } from '../../../lib/clock.ts';
import { nowSeconds } from '../../../lib/clock.ts';
import { own } from '../../../lib/own-property.ts';
import type { Claim, LightningStore, ProofKey } from '../../../store/ports/proofs.ts';
import type { RateSource } from '../../../upstream/rates/exchanges.ts';
import { decodeInvoice, type Invoice } from '../../lnbtc/bolt11.ts';
import { LIGHTNING_NETWORKS, type LightningNetwork } from '../../lnbtc/networks.ts';
import { checkProof, type Proof } from '../../lnbtc/proof.ts';
import { lightningRequirement, SKEW_SECONDS } from '../../lnbtc/terms.ts';
import type { Credential } from '../../protocol.ts';
import { PaymentRefused } from '../../refusal.ts';
import type { Issuer } from './issuer.ts';
import type { LightningOrder } from './order.ts';
import { priceMsat } from './quote.ts';

interface JudgeOptions {
  store: LightningStore;
  issuer: Issuer | null;
  rates: RateSource;
  network: LightningNetwork;
  /** Others make invoices with the node's key too. */
  shared: boolean;
  clock: Clock;
}

/** A valid proof for the order, with the claim that it already has. */
export interface Judged {
  readonly key: ProofKey;
  readonly proof: Proof;
  readonly claim: Claim | null;
}

/** Judges a presented proof for an order; throws PaymentRefused with the scheme's reason. Claims nothing. */
export type Judge = (order: LightningOrder<never>, credential: Credential) => Promise<Judged>;

/** What network, amount and recipient must be, by our own books. */
interface Terms {
  readonly network: string;
  readonly amountMsat: bigint;
  readonly payTo: string;
}

/**
 * The requirement is made from our own record of the invoice and from the request that will run, so a quote that we signed holds
 * whatever the rate does since. The time of a claimed proof was judged when it was claimed: a granted request outlives its invoice.
 */
export function createJudge({ store, issuer, rates, network, shared, clock }: JudgeOptions): Judge {
  async function termsOf(order: LightningOrder<never>, key: ProofKey, claim: Claim | null): Promise<Terms> {
    const known = claim ?? (await store.findInvoice(key));
    if (known) return { ...known, payTo: Buffer.from(known.payTo).toString('hex') };
    // Only our own records tell our invoices from others' under a shared key.
    if (shared) throw new PaymentRefused('exact_lnbtc_payment_not_paid');
    const payTo = issuer?.payTo();
    if (!payTo) throw new PaymentRefused('invalid_exact_lnbtc_invoice_payee_mismatch');
    // Without a record, as after a restore from backup, our node's signature is enough, at today's price.
    const { rate } = await rates.current();
    return { network: network.id, amountMsat: priceMsat(order.endpoint.price?.units ?? 0n, rate), payTo };
  }

  return async (order, credential) => {
    const invoice = own(own(credential.accepted, 'extra'), 'invoice');
    const decoded = decodeInvoice(invoice);
    // Unreadable: the scheme's checks say why, before anything that only our books know.
    if (!decoded) throw new PaymentRefused(unreadable(order, credential, network));
    // By what the node signed, so that what was sold on one network is honoured after a change to the other.
    const sold = LIGHTNING_NETWORKS.find(({ currency }) => currency === decoded.currency) ?? network;
    const key = { network: sold.id, paymentHash: decoded.paymentHash };
    const found = await store.findClaim(key);
    const claim = found && isOfInvoice(found, decoded) ? found : null;
    if (claim && !grants(claim, order)) throw new PaymentRefused('duplicate_settlement');
    const terms = await termsOf(order, key, claim);
    const requirement = lightningRequirement({ ...terms, binding: order.binding, invoice: String(invoice) });
    const now = claim ? decoded.createdAt : nowSeconds(clock);
    const verdict = checkProof(credential, requirement, { now, skewSeconds: SKEW_SECONDS });
    if (!verdict.ok) throw new PaymentRefused(verdict.reason);
    return { key, proof: verdict.proof, claim };
  };
}

/** A facilitator's claim for another node was of another invoice over the same hash: its store takes ours in its place. */
function isOfInvoice({ grant, payTo }: Claim, { payee }: Invoice): boolean {
  return grant !== null || Buffer.compare(payTo, payee) === 0;
}

/** A claim through the facilitator grants nothing here, and one of ours exactly its request. */
function grants({ grant }: Claim, { binding }: LightningOrder<never>): boolean {
  return grant !== null && Buffer.compare(grant.requestHash, binding.hash) === 0;
}

/**
 * The reason for a payment whose invoice cannot be read. Amount and recipient are taken from the payment, since there is no record to hold against
 * it. No time is judged: the invoice is read before its time.
 */
function unreadable({ binding }: LightningOrder<never>, credential: Credential, network: LightningNetwork): string {
  const { amount, payTo } = credential.accepted;
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
