import type { RailProbe } from '../../settler.ts';
import type { FacilitatorClient, Supported, SupportedKind } from './client.ts';

/**
 * Asks a service's `/supported` whether the service settles our kind of payment, and from which address: version 2, scheme `exact`, this network, and
 * an `extra` that `fitsExtra` accepts. Never rejects.
 */
export async function probeSupported(
  client: Pick<FacilitatorClient, 'supported'>,
  network: string,
  fitsExtra: (extra: SupportedKind['extra']) => boolean,
): Promise<RailProbe> {
  const isOurs = (kind: SupportedKind): boolean =>
    kind.x402Version === 2 && kind.scheme === 'exact' && kind.network === network && fitsExtra(kind.extra);
  try {
    const { kinds, signers } = await client.supported();
    if (!kinds.some(isOurs)) return { ok: false, detail: '/supported does not list this network' };
    const sender = signersOf(signers, network).find((one) => ADDRESS.test(one));
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
