import { createHash } from 'node:crypto';
import { type Answer, call } from '../service/service.ts';

/** The requirement of a Lightning 402, as far as tests read it. */
export interface LightningRequirement {
  readonly scheme: string;
  readonly network: string;
  readonly asset: string;
  readonly amount: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: Record<string, unknown> & { readonly invoice: string; readonly requestHash: string };
}

/** What a buyer holds after paying: the header that proves it. */
export interface LightningProof {
  readonly header: string;
  readonly preimage: string;
  /** 64 hex characters. */
  readonly paymentHash: string;
  readonly requirement: LightningRequirement;
}

/** Pays an invoice really and returns the preimage, 64 hex characters. */
export type PayInvoice = (invoice: string) => Promise<string>;

/** The requirement that a 402 offers. */
export function offeredBy(answer: Answer): LightningRequirement {
  const challenge = JSON.parse(Buffer.from(String(answer.headers['payment-required']), 'base64').toString('utf8'));
  return challenge.accepts[0];
}

/** A payment payload around an offer and a preimage. */
export function proofHeader(accepted: unknown, preimage: unknown): string {
  return Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload: { preimage } })).toString('base64');
}

/** Asks for a path, pays what it wants and keeps the proof without presenting it. */
export async function payFor(pay: PayInvoice, origin: string, path: string): Promise<LightningProof> {
  const answer = await call(origin, path);
  if (answer.status !== 402) throw new Error(`${path}: ${answer.status} ${answer.body}`);
  const requirement = offeredBy(answer);
  const preimage = await pay(requirement.extra.invoice);
  return { header: proofHeader(requirement, preimage), preimage, paymentHash: hashOfPreimage(preimage), requirement };
}

/** Both as hex. */
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
