import { randomBytes } from 'node:crypto';
import { openRawClient, postOf } from '../../../scripts/bench/raw-client.ts';
import { type LightningProof, lightningProof } from '../../../scripts/lib/lightning/lightning-proofs.ts';

/** A proof that is valid for an hour by the machine's own clock. All are for one payee. */
export function proofNow(): LightningProof {
  return lightningProof({ createdAt: Math.floor(Date.now() / 1000), maxTimeoutSeconds: 3600 });
}

/** A proof that is valid for an hour, for a payee of its own. */
export function proofOfAnother(): LightningProof {
  const privateKey = randomBytes(32);
  return lightningProof({ privateKey, createdAt: Math.floor(Date.now() / 1000), maxTimeoutSeconds: 3600 });
}

/** The result of one settle call: x402's code, or `lost` when the connection broke before an answer. */
export type SettleEnd = 'success' | 'lost' | (string & {});

/** Settles proofs over `connections` at once, in their order. The results have the order of the proofs. */
export async function settleOver(origin: string, proofs: readonly LightningProof[], connections: number) {
  const ends: SettleEnd[] = proofs.map(() => 'lost');
  let next = 0;
  const work = async () => {
    const client = await openRawClient(origin);
    try {
      for (let at = next++; at < proofs.length; at = next++) {
        const body = JSON.stringify(proofs[at]?.body);
        ends[at] = endOf(await client.send(postOf(origin, '/facilitator/settle', body)));
      }
    } finally {
      client.close();
    }
  };
  // A killed process breaks every connection. Calls without an answer stay `lost`.
  await Promise.allSettled(Array.from({ length: connections }, work));
  return ends;
}

function endOf(body: string): SettleEnd {
  const { success, errorReason } = JSON.parse(body) as { success: boolean; errorReason?: string };
  return success ? 'success' : String(errorReason);
}

/** Every form of a preimage that a file or a log could hold. */
export function formsOf(preimage: string): readonly (string | Buffer)[] {
  const raw = Buffer.from(preimage, 'hex');
  // Base64 of whole groups of three bytes, which is the same whatever text follows.
  const encoded = (['base64', 'base64url'] as const).map((encoding) => raw.subarray(0, 30).toString(encoding));
  return [raw, preimage, preimage.toUpperCase(), ...encoded];
}
