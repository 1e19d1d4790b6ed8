import { z } from 'zod';
import { followReference } from '../../src/lib/untrusted.ts';
import { fitsPath } from './path-template.ts';
import { parseUsd } from './usdc.ts';

/** What a route costs by a listing. Null: the listing does not say it in this unit. */
export interface ListedPrice {
  /** In USDC base units. */
  readonly units: bigint | null;
  readonly msat: bigint | null;
}

const priceSchema = z.looseObject({ price: z.looseObject({ amount: z.string() }) });
const offerSchema = z.looseObject({
  intent: z.literal('charge'),
  method: z.string(),
  amount: z.string().regex(/^\d{1,30}$/),
  currency: z.string(),
});

/**
 * The price of a GET on this path, from the seller's own OpenAPI document: `x-payment-info` with a price in USD, or with MPP's offers in base units. The
 * lower one counts where it has both. Null when the document has none.
 */
export function listedPriceOf(openapi: unknown, path: string, asset: string | null = null): ListedPrice | null {
  const info = paymentInfoOf(openapi, path);
  const usd = priceSchema.safeParse(info);
  const offers = [info, ...arrayOf(z.looseObject({ offers: z.array(z.unknown()) }).safeParse(info).data?.offers)];
  const charges = offers.flatMap((offer) => offerSchema.safeParse(offer).data ?? []);
  const inUsdc = charges.filter(({ currency }) => asset !== null && currency.toLowerCase() === asset.toLowerCase());
  const inSats = charges.filter(({ method, currency }) => method === 'lightning' && /^sat$/i.test(currency));
  const units = lowest([
    usd.success ? parseUsd(usd.data.price.amount) : null,
    ...inUsdc.map(({ amount }) => BigInt(amount)),
  ]);
  const msat = lowest(inSats.map(({ amount }) => BigInt(amount) * 1000n));
  return units === null && msat === null ? null : { units, msat };
}

/** The `x-payment-info` of a path's GET. A path that equals the requested one comes before a template that fits it. */
function paymentInfoOf(openapi: unknown, path: string): unknown {
  const document = z.looseObject({ paths: z.record(z.string(), z.unknown()) }).safeParse(openapi);
  if (!document.success) return null;
  const { paths } = document.data;
  const template = Object.hasOwn(paths, path) ? path : Object.keys(paths).find((one) => fitsPath(one, path));
  if (template === undefined) return null;
  const item = followReference(openapi, paths[template]);
  const operation = z.looseObject({ get: z.looseObject({ 'x-payment-info': z.unknown() }) }).safeParse(item);
  return operation.data?.get['x-payment-info'] ?? null;
}

const arrayOf = (values: readonly unknown[] | undefined): readonly unknown[] => values ?? [];

function lowest(amounts: readonly (bigint | null)[]): bigint | null {
  const known = amounts.filter((amount) => amount !== null);
  return known.reduce<bigint | null>((least, amount) => (least === null || amount < least ? amount : least), null);
}
