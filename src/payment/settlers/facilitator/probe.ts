import type { RailProbe } from '../../settler.ts';
import type { FacilitatorClient, Supported, SupportedKind } from './client.ts';

/** Asks a service's `/supported` whether the service settles our kind of payment, and from which address. Never rejects. */
export async function probeSupported(
  client: Pick<FacilitatorClient, 'supported'>,
  fits: (kind: SupportedKind) => boolean,
): Promise<RailProbe> {
  try {
    const { kinds, signers } = await client.supported();
    const kind = kinds.find(fits);
    if (!kind) return { ok: false, detail: '/supported does not list this network' };
    const sender = signersOf(signers, kind.network).find((one) => ADDRESS.test(one));
    return { ok: true, ...(sender && { sender: sender.toLowerCase() as `0x${string}` }) };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : 'failed' };
  }
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/** The signers of the network itself, then those of all networks of its kind. */
function signersOf(signers: Supported['signers'], network: string): readonly string[] {
  return [network, `${network.split(':')[0]}:*`].flatMap((name) =>
    Object.hasOwn(signers, name) ? (signers[name] ?? []) : [],
  );
}
