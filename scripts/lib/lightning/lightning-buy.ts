import { boundUrl } from '../pay/bound-url.ts';
import { checkLightningOffer, checkPaidPreimage, type OfferVerdict } from './lightning-checks.ts';
import { NotPaid } from './lightning-not-paid.ts';
import type { LightningOffer } from './lightning-offer.ts';
import type { LightningPayer } from './lightning-payer.ts';
import { presentProof } from './lightning-present.ts';
import { completeProof, forgetProof, type LightningProof, saveProof } from './lightning-proof-file.ts';
import { formatSats } from './sats.ts';

interface Purchase {
  readonly url: URL;
  readonly offer: LightningOffer;
  /** The most to pay, the network's fee included where the payer can be told. */
  readonly ceilingMsat: bigint;
  readonly payer: LightningPayer;
  readonly till: Till;
}

/** Where words to the buyer go, and where the answer's body. */
export interface Till {
  readonly say: (line: string) => void;
  readonly deliver: (body: Buffer) => Promise<void>;
}

/** Judges an offer for a GET; throws with the reason when it must not be paid. */
export function judgeOffer(
  url: URL,
  { entry, resourceUrl }: LightningOffer,
  ceilingMsat: bigint,
): Extract<OfferVerdict, { ok: true }> {
  const now = Math.floor(Date.now() / 1000);
  const verdict = checkLightningOffer(entry, { method: 'GET', url: boundUrl(url), resourceUrl, now, ceilingMsat });
  if (verdict.ok) return verdict;
  throw new Error(`${verdict.reason}${verdict.hint ? ` (${verdict.hint})` : ''}; nothing was paid`);
}

/**
 * Buys one answer over Lightning and delivers its body. The proof is on disk before the payment and leaves it only with the answer
 * delivered, so a buyer who paid can redeem later whatever broke in between; nothing is ever paid twice. In this order:
 * 1. the offer is judged; 2. the proof is written, without its preimage; 3. the payer pays; 4. the preimage is checked;
 * 5. the proof is completed; 6. it is presented, again if need be; 7. it is forgotten.
 */
export async function buyOverLightning({ url, offer, ceilingMsat, payer, till }: Purchase): Promise<void> {
  const { invoice, text } = judgeOffer(url, offer, ceilingMsat);
  const paymentHash = Buffer.from(invoice.paymentHash).toString('hex');
  const { entry: accepted, resource } = offer;
  const proof = { url: boundUrl(url), paymentHash, invoice: text, resource, accepted, preimage: null };
  const path = await saveProof(proof);
  const feeLimitMsat = ceilingMsat - invoice.amountMsat;
  const told = await payer.pay(text, { feeLimitMsat }).catch(async (error: unknown) => {
    if (!(error instanceof NotPaid)) throw open(error, paymentHash, path);
    await forgetProof(path);
    throw new Error(`${payer.name} did not pay: ${error.message}; nothing was paid`);
  });
  const paid = await complete(proof, told, path, till);
  till.say(`paid:    ${formatSats(invoice.amountMsat)} by ${payer.name}, payment hash ${paymentHash}`);
  await presentAndForget(paid, path, till);
}

/** Redeems a proof that was kept: asks the payer for the preimage where it is missing, and never pays twice. */
export async function redeemProof(
  kept: LightningProof,
  path: string,
  payer: LightningPayer | null,
  till: Till,
): Promise<void> {
  if (kept.preimage !== null) return presentAndForget(kept, path, till);
  if (!payer) throw new Error(`${path} has no preimage yet: name the payer that was asked to pay, so that it can tell`);
  const told = await payer.find(kept.invoice, kept.paymentHash).catch((error: unknown) => {
    throw open(error, kept.paymentHash, path);
  });
  if (told === null) throw new Error(`${payer.name} knows of no finished payment with the hash ${kept.paymentHash}`);
  return presentAndForget(await complete(kept, told, path, till), path, till);
}

async function complete(proof: LightningProof, told: unknown, path: string, { say }: Till): Promise<LightningProof> {
  const fault = checkPaidPreimage(told, Buffer.from(proof.paymentHash, 'hex'));
  if (fault !== null) throw open(new Error(fault), proof.paymentHash, path);
  const paid = { ...proof, preimage: told as string };
  // Not on disk: it may still buy the answer now, and the payer can be asked again.
  await completeProof(path, paid).catch(() => say(`${path} could not be written: it has no preimage yet`));
  return paid;
}

async function presentAndForget(proof: LightningProof, path: string, { say, deliver }: Till): Promise<void> {
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
  await forgetProof(path);
}

/** Neither paid nor not paid for certain: the proof stays, and the payer can be asked again. */
function open(error: unknown, paymentHash: string, path: string): Error {
  const reason = error instanceof Error ? error.message : String(error);
  const what = `whether it was paid is open (payment hash ${paymentHash})`;
  return new Error(`${reason}; ${what}: --proof ${path} asks the payer and redeems it, and never pays twice`);
}
