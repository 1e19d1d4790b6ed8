import { readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { writeJsonAtomically } from '../../scripts/lib/write-json.ts';
import { paymentCredential } from '../pay/payment-challenge.ts';

const common = {
  url: z.url({ protocol: /^https?$/ }),
  paymentHash: z.string().regex(/^[0-9a-f]{64}$/),
  invoice: z.string(),
  /** Null until the payer has returned it. */
  preimage: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable(),
};

const proofSchema = z.union([
  z.object({ ...common, protocol: z.literal('l402'), scheme: z.string(), token: z.string() }),
  z.object({ ...common, protocol: z.literal('mpp'), challenge: z.record(z.string(), z.string()) }),
  z.object({
    ...common,
    // Files that were written before there were other protocols do not name theirs.
    protocol: z.literal('x402').default('x402'),
    resource: z.unknown().optional(),
    accepted: z.record(z.string(), z.unknown()),
  }),
]);

/** Buys the answer, and buys it again when the connection or the seller fails. Anyone who holds the preimage can use it. */
export type LightningProof = z.output<typeof proofSchema>;

/** Its name begins with this, then with the payment hash. A part of the hash could name two proofs: the seller chooses the hash. */
const PREFIX = 'lightning-proof-';

/**
 * Writes a proof to a file that only its owner may read, and returns the path: in this folder, or else in the system's temporary directory. Throws when
 * neither can be written. Then nothing must be paid.
 */
export async function saveProof(proof: LightningProof, folder: string): Promise<string> {
  const name = `${PREFIX}${proof.paymentHash}.json`;
  const here = join(folder, name);
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

/**
 * The file of an earlier payment for the same URL, or of the same invoice, whose answer has not arrived; null when there is none. It looks where
 * `saveProof` writes. Another payment for the URL could pay twice for one call, and the invoice's proof would be written over.
 */
export async function findOpenProof(
  { url, paymentHash }: Pick<LightningProof, 'url' | 'paymentHash'>,
  folder: string,
): Promise<string | null> {
  for (const place of [folder, tmpdir()]) {
    const names = await readdir(place).catch(() => []);
    for (const name of names.filter((found) => found.startsWith(PREFIX) && found.endsWith('.json'))) {
      const path = join(place, name);
      // A file that cannot be read belongs to another user, or is no proof.
      const proof = await readProof(path).catch(() => null);
      if (proof?.url === url || proof?.paymentHash === paymentHash) return path;
    }
  }
  return null;
}

/** The header by which a proof is presented, in the form of its protocol. */
export function proofHeader(proof: LightningProof): Record<string, string> {
  const { preimage } = proof;
  switch (proof.protocol) {
    case 'l402':
      return { authorization: `${proof.scheme} ${proof.token}:${preimage}` };
    case 'mpp':
      return paymentCredential(proof.challenge, { preimage });
    case 'x402': {
      const { resource, accepted } = proof;
      const payload = { x402Version: 2, ...(resource !== undefined && { resource }), accepted, payload: { preimage } };
      return { 'payment-signature': Buffer.from(JSON.stringify(payload), 'utf8').toString('base64') };
    }
  }
}
