import { createHash } from 'node:crypto';
import { type Answer, call } from '../service/service.ts';

/** The part of a Lightning 402's requirement that tests read. */
export interface LightningRequirement {
  readonly scheme: string;
  readonly network: string;
  readonly asset: string;
  readonly amount: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: Record<string, unknown> & { readonly invoice: string; readonly requestHash: string };
}

/** What a buyer has after a payment: the header that proves it. */
export interface LightningProof {
  readonly header: string;
  readonly preimage: string;
  /** 64 hex characters. */
  readonly paymentHash: string;
  readonly requirement: LightningRequirement;
}

/** Really pays an invoice. Returns the preimage, 64 hex characters. */
export type PayInvoice = (invoice: string) => Promise<string>;

/** The requirement that a 402 offers. */
export function offeredBy(answer: Answer): LightningRequirement {
  const challenge = JSON.parse(Buffer.from(String(answer.headers['payment-required']), 'base64').toString('utf8'));
  return challenge.accepts[0];
}

/** The header of a payment with this offer and preimage. */
export function proofHeader(accepted: unknown, preimage: unknown): string {
  return Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload: { preimage } })).toString('base64');
}

/** Requests a path, pays its offer and returns the proof without presenting it. */
export async function payFor(pay: PayInvoice, origin: string, path: string): Promise<LightningProof> {
  const answer = await call(origin, path);
  if (answer.status !== 402) throw new Error(`${path}: ${answer.status} ${answer.body}`);
  const requirement = offeredBy(answer);
  const preimage = await pay(requirement.extra.invoice);
  return { header: proofHeader(requirement, preimage), preimage, paymentHash: hashOfPreimage(preimage), requirement };
}

/** The payment hash of a preimage, both in hex. */
export function hashOfPreimage(preimage: string): string {
  return createHash('sha256').update(Buffer.from(preimage, 'hex')).digest('hex');
}

/** Presents a proof. */
export function presentProof(
  origin: string,
  path: string,
  { header }: Pick<LightningProof, 'header'>,
): Promise<Answer> {
  return call(origin, path, { headers: { 'payment-signature': header } });
}
