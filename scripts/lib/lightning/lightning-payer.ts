import { readFile } from 'node:fs/promises';
import { createLndPayer } from './lightning-payer-lnd.ts';
import { createNwcPayer } from './lightning-payer-nwc.ts';
import { createUrlPayer } from './lightning-payer-url.ts';

/** Whoever pays for the buyer. What it returns is untrusted until it was checked against the payment hash. */
export interface LightningPayer {
  /** For a person. */
  readonly name: string;
  /**
   * Pays an invoice and returns what it calls the preimage. Throws NotPaid when nothing was paid for certain;
   * anything else that is thrown leaves it open.
   */
  pay(invoice: string, terms: PayTerms): Promise<unknown>;
  /** The preimage of a payment that was asked for before, and never a second payment: null when it knows of none that went through; throws when that is open. */
  find(invoice: string, paymentHash: string): Promise<unknown>;
  close(): void;
}

interface PayTerms {
  /** The most that the network may take for carrying the payment, where the payer can be told. */
  readonly feeLimitMsat: bigint;
}

/** The payer that the environment names; null when it names none. Throws in words when it names several, or one without its parts. */
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
