import { decodePaymentRequiredHeader } from '@x402/core/http';
import { z } from 'zod';

/** The members of a 402 that matter to a buyer. All others are kept as they are. */
const challengeSchema = z.looseObject({
  x402Version: z.literal(2),
  error: z.string().optional(),
  resource: z.looseObject({ url: z.string() }),
  accepts: z.array(z.unknown()),
});

/** Decodes a PAYMENT-REQUIRED header; `accepts` stays as it is. Throws when it is no x402 version 2 challenge. */
export function readChallenge(header: string): z.output<typeof challengeSchema> {
  const challenge = challengeSchema.safeParse(decode(header));
  if (!challenge.success) throw new Error('the PAYMENT-REQUIRED header holds no x402 version 2 challenge');
  return challenge.data;
}

/** The seller's reason for a 402; null when the header has none. */
export function challengeErrorOf(headers: Headers): string | null {
  const challenge = challengeSchema.safeParse(decode(headers.get('payment-required') ?? ''));
  return challenge.success ? (challenge.data.error ?? null) : null;
}

const provenSchema = z.looseObject({
  extra: z.looseObject({ voucherState: z.looseObject({ signedMaxClaimable: z.string() }) }),
});

/** The ceilings of the vouchers with which a 402 proves what it has charged in a payment channel, in base units. */
export function chargesProvenBy(headers: Headers): string[] {
  const challenge = challengeSchema.safeParse(decode(headers.get('payment-required') ?? ''));
  return (challenge.data?.accepts ?? []).flatMap((entry) => {
    const proven = provenSchema.safeParse(entry);
    return proven.success ? [proven.data.extra.voucherState.signedMaxClaimable] : [];
  });
}

function decode(header: string): unknown {
  try {
    return decodePaymentRequiredHeader(header);
  } catch {
    return null;
  }
}
