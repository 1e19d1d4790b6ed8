import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { writeJsonAtomically } from '../write-json.ts';

const proofSchema = z.object({
  url: z.url({ protocol: /^https?$/ }),
  paymentHash: z.string().regex(/^[0-9a-f]{64}$/),
  invoice: z.string(),
  resource: z.unknown(),
  accepted: z.record(z.string(), z.unknown()),
  /** Null until the payer has returned it. */
  preimage: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable(),
});

/** Buys the answer, and buys it again when the connection or the seller fails. Anyone who holds the preimage can use it. */
export type LightningProof = z.output<typeof proofSchema>;

/**
 * Writes a proof to a file that only its owner may read, and returns the path: in the current directory, or else in the system's temporary directory.
 * Throws when neither can be written. Then nothing must be paid.
 */
export async function saveProof(proof: LightningProof): Promise<string> {
  const name = `lightning-proof-${proof.paymentHash.slice(0, 16)}.json`;
  const here = join(process.cwd(), name);
  try {
    await writeJsonAtomically(here, proof);
    return here;
  } catch {
    const elsewhere = join(tmpdir(), name);
    await writeJsonAtomically(elsewhere, proof);
    return elsewhere;
  }
}

/** Writes the proof with its preimage over the file at `path`. */
export function completeProof(path: string, proof: LightningProof): Promise<void> {
  return writeJsonAtomically(path, proof);
}

/** Reads a proof that `saveProof` wrote. Throws a readable error. */
export async function readProof(path: string): Promise<LightningProof> {
  const text = await readFile(path, 'utf8').catch(() => {
    throw new Error(`${path} cannot be read`);
  });
  let json: unknown = null;
  try {
    json = JSON.parse(text);
  } catch {
    // Checked below, like any other file that is no proof.
  }
  const proof = proofSchema.safeParse(json);
  if (!proof.success) throw new Error(`${path} holds no proof of a Lightning payment`);
  return proof.data;
}

/** Deletes a proof that has bought its answer, or for which nothing was paid. */
export function deleteProof(path: string): Promise<void> {
  return rm(path, { force: true });
}

/** The PAYMENT-SIGNATURE header of a proof: the entry as it was offered, with its invoice, and the preimage. */
export function proofHeader({ resource, accepted, preimage }: LightningProof): Record<string, string> {
  const payload = { x402Version: 2, ...(resource !== undefined && { resource }), accepted, payload: { preimage } };
  return { 'payment-signature': Buffer.from(JSON.stringify(payload), 'utf8').toString('base64') };
}
