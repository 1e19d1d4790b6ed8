import { readFile } from 'node:fs/promises';
import type { LightningPayer } from './lightning-payer.ts';
import { createLndPayer } from './lightning-payer-lnd.ts';
import { createNwcPayer } from './lightning-payer-nwc.ts';
import { createUrlPayer } from './lightning-payer-url.ts';

/** The payer that the environment names; null when it names none. Throws a readable error when it names several, or an incomplete one. */
export async function payerFrom(env: Record<string, string | undefined>): Promise<LightningPayer | null> {
  const { NWC_PAYER: nwc, LND_PAYER_URL: lnd, PAYER_URL: url } = env;
  if ([nwc, lnd, url].filter(Boolean).length > 1) throw new Error('set one of NWC_PAYER, LND_PAYER_URL and PAYER_URL');
  if (nwc) return createNwcPayer(nwc);
  if (url) return createUrlPayer(url);
  if (!lnd) return null;
  const macaroon = env.LND_PAYER_MACAROON ?? '';
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(macaroon))
    throw new Error('LND_PAYER_MACAROON must hold the macaroon as hex digits');
  const certificate = env.LND_PAYER_TLS_CERT ? await readFile(env.LND_PAYER_TLS_CERT, 'utf8') : null;
  return createLndPayer({ url: lnd, macaroon, certificate });
}
