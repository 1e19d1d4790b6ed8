import { z } from 'zod';
import { readChallenge } from '../pay/challenge.ts';

/** The entry of a 402 that is paid over Lightning, as it was offered, and what it is for. */
export interface LightningOffer {
  /** Untouched: it goes back to the seller as it came. */
  readonly entry: Readonly<Record<string, unknown>>;
  readonly resource: unknown;
  /** The URL that the seller says it sells. */
  readonly resourceUrl: string;
  /** The seller's own words; null when it says nothing. */
  readonly description: string | null;
}

const entrySchema = z.record(z.string(), z.unknown());

/** The first entry on a Lightning network; null when there is none. Throws when the header is no x402 version 2 challenge. */
export function readLightningOffer(header: string): LightningOffer | null {
  const { accepts, resource } = readChallenge(header);
  for (const offered of accepts) {
    const entry = entrySchema.safeParse(offered);
    if (!entry.success || !String(entry.data.network).startsWith('lnbtc:')) continue;
    const { description } = resource;
    return {
      entry: offered as Record<string, unknown>,
      resource,
      resourceUrl: resource.url,
      description: typeof description === 'string' ? description : null,
    };
  }
  return null;
}

const priceSchema = z.looseObject({ priceUsd: z.string(), btcUsd: z.string() });

/** What the body of a 402 says of the price in dollars and the rate behind it; null when it does not. */
export function saidPrice(body: string): { priceUsd: string; btcUsd: string } | null {
  try {
    const said = priceSchema.safeParse(JSON.parse(body));
    return said.success ? { priceUsd: said.data.priceUsd, btcUsd: said.data.btcUsd } : null;
  } catch {
    return null;
  }
}
