import type { Invoice } from '../../src/payment/lightning/bolt11.ts';
import { boundUrl } from '../pay/bound-url.ts';
import { checkInvoiceOffer } from './invoice-checks.ts';
import type { InvoiceOffer } from './invoice-offer.ts';
import { checkLightningOffer, checkPaidPreimage } from './lightning-checks.ts';
import { NotPaid } from './lightning-not-paid.ts';
import type { LightningOffer } from './lightning-offer.ts';
import type { LightningPayer } from './lightning-payer.ts';
import { presentProof } from './lightning-present.ts';
import { completeProof, deleteProof, findOpenProof, type LightningProof, saveProof } from './lightning-proof-file.ts';
import { formatSats } from './sats.ts';

interface Purchase {
  /** Called right before the payment, because time has passed since the offer was shown. Throws the reason when it must not be paid. */
  readonly check: () => CheckedInvoice;
  /** The most to pay, the network's fee included where the payer takes a fee limit. */
  readonly ceilingMsat: bigint;
  readonly payer: LightningPayer;
  /** Where the proof is kept. */
  readonly folder: string;
  readonly outputs: Outputs;
}

/** An invoice that passed its protocol's checks, and the proof that lacks only its preimage. */
export interface CheckedInvoice {
  readonly invoice: Invoice;
  /** The network's name in the protocol. */
  readonly network: string;
  readonly proof: LightningProof;
}

/** The outputs of a purchase: messages to the buyer, and the answer's body. */
export interface Outputs {
  readonly say: (line: string) => void;
  readonly deliver: (body: Buffer) => Promise<void>;
}

const EARLIER = 'an earlier payment for this URL, or of this invoice, has not had its answer; nothing was paid';

/** Checks an x402 offer of a GET. Throws the reason when it must not be paid. */
export function checkOffer(url: URL, offer: LightningOffer, ceilingMsat: bigint): CheckedInvoice {
  const { entry: accepted, resource, resourceUrl } = offer;
  const bound = boundUrl(url);
  const verdict = checkLightningOffer(accepted, { method: 'GET', url: bound, resourceUrl, now: now(), ceilingMsat });
  if (!verdict.ok) throw new Error(`${verdict.reason}${verdict.hint ? ` (${verdict.hint})` : ''}; nothing was paid`);
  const { invoice, text, network } = verdict;
  return { invoice, network, proof: { ...started(bound, invoice, text), protocol: 'x402', resource, accepted } };
}

/** Checks an offer of L402 or MPP. Throws the reason when it must not be paid. */
export function checkAskedInvoice(url: URL, offer: InvoiceOffer, ceilingMsat: bigint): CheckedInvoice {
  const verdict = checkInvoiceOffer(offer, { now: now(), ceilingMsat });
  if (!verdict.ok) throw new Error(`${verdict.reason}; nothing was paid`);
  const { invoice, network } = verdict;
  return { invoice, network, proof: { ...started(boundUrl(url), invoice, offer.invoice), ...offer.proof } };
}

const now = () => Math.floor(Date.now() / 1000);
/** The part of a proof that all protocols share, before the payment. */
const started = (url: string, { paymentHash }: Invoice, invoice: string) => ({
  url,
  invoice,
  paymentHash: Buffer.from(paymentHash).toString('hex'),
  preimage: null,
});

/**
 * Buys one answer over Lightning and delivers its body. No invoice is paid twice.
 * The proof is on disk before the payment, and is deleted only after the delivery. So a buyer who paid can redeem it later, whatever failed in
 * between.
 * The order: 1. check the offer, and that no earlier payment for this URL waits for its answer; 2. write the proof, without its preimage; 3. pay;
 * 4. check the preimage; 5. complete the proof; 6. present it, again if needed; 7. delete it.
 */
export async function buyOverLightning({ check, ceilingMsat, payer, folder, outputs }: Purchase): Promise<void> {
  const { invoice, proof } = check();
  const { paymentHash } = proof;
  const earlier = await findOpenProof(proof, folder);
  if (earlier !== null)
    throw new Error(`${EARLIER}: redeem it with --proof ${earlier}, or move that file away to pay again`);
  const path = await saveProof(proof, folder);
  const feeLimitMsat = ceilingMsat - invoice.amountMsat;
  const preimage = await payer.pay(proof.invoice, { feeLimitMsat }).catch(async (error: unknown) => {
    if (!(error instanceof NotPaid)) throw open(error, paymentHash, path);
    await deleteProof(path);
    throw new Error(`${payer.name} did not pay: ${error.message}; nothing was paid`);
  });
  const paid = await complete(proof, preimage, path, outputs);
  outputs.say(`paid:    ${formatSats(invoice.amountMsat)} by ${payer.name}, payment hash ${paymentHash}`);
  await presentAndDelete(paid, path, outputs);
}

/** Redeems a saved proof. When its preimage is missing, asks the payer for it. Never pays again. */
export async function redeemProof(
  kept: LightningProof,
  path: string,
  payer: LightningPayer | null,
  outputs: Outputs,
): Promise<void> {
  if (kept.preimage !== null) return presentAndDelete(kept, path, outputs);
  if (!payer)
    throw new Error(`${path} has no preimage yet: name the payer that was asked to pay, because it knows the outcome`);
  const preimage = await payer.find(kept.invoice, kept.paymentHash).catch((error: unknown) => {
    throw open(error, kept.paymentHash, path);
  });
  if (preimage === null)
    throw new Error(`${payer.name} knows of no finished payment with the hash ${kept.paymentHash}`);
  return presentAndDelete(await complete(kept, preimage, path, outputs), path, outputs);
}

async function complete(
  proof: LightningProof,
  preimage: unknown,
  path: string,
  { say }: Outputs,
): Promise<LightningProof> {
  const fault = checkPaidPreimage(preimage, Buffer.from(proof.paymentHash, 'hex'));
  if (fault !== null) throw open(new Error(fault), proof.paymentHash, path);
  const paid = { ...proof, preimage: preimage as string };
  // The preimage is not on disk. The proof may still buy the answer now, and the payer can be asked again.
  await completeProof(path, paid).catch(() => say(`${path} could not be written: it has no preimage yet`));
  return paid;
}

async function presentAndDelete(proof: LightningProof, path: string, { say, deliver }: Outputs): Promise<void> {
  const { paymentHash } = proof;
  const fault = checkPaidPreimage(proof.preimage, Buffer.from(paymentHash, 'hex'));
  if (fault !== null) throw new Error(`${fault}: ${path} was changed`);
  try {
    await deliver(await presentProof(proof, say));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `${reason}; it is paid (payment hash ${paymentHash}) and must not be paid again: redeem it with --proof ${path}`,
    );
  }
  await deleteProof(path);
}

/** Throws for a payment whose outcome is not known. The proof stays, and the payer can be asked again. */
function open(error: unknown, paymentHash: string, path: string): Error {
  const reason = error instanceof Error ? error.message : String(error);
  const what = `whether it was paid is open (payment hash ${paymentHash})`;
  return new Error(`${reason}; ${what}: --proof ${path} asks the payer and redeems it, and never pays twice`);
}
