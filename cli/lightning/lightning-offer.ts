import { z } from 'zod';
import { readChallenge } from '../pay/challenge.ts';

/** The Lightning entry of a 402, and the resource that it is for. */
export interface LightningOffer {
  /** Unchanged, because the seller must get it back as it was. */
  readonly entry: Readonly<Record<string, unknown>>;
  readonly resource: unknown;
  /** The URL that the seller names as sold. */
  readonly resourceUrl: string;
  /** The seller's description; null when there is none. */
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

/** The price in dollars and the exchange rate from a 402's body; null when it has neither. */
export function statedPrice(body: string): { priceUsd: string; btcUsd: string } | null {
  try {
    const price = priceSchema.safeParse(JSON.parse(body));
    return price.success ? { priceUsd: price.data.priceUsd, btcUsd: price.data.btcUsd } : null;
  } catch {
    return null;
  }
}
