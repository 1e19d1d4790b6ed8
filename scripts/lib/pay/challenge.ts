import { decodePaymentRequiredHeader } from '@x402/core/http';
import { z } from 'zod';

/** What is said in the 402 that matters to a buyer; everything else is kept as it came. */
const challengeSchema = z.looseObject({
  x402Version: z.literal(2),
  error: z.string().optional(),
  resource: z.looseObject({ url: z.string() }),
  accepts: z.array(z.unknown()),
});

/** What a PAYMENT-REQUIRED header says, its `accepts` as they came; throws when it is no x402 version 2 challenge. */
export function readChallenge(header: string): z.output<typeof challengeSchema> {
  const challenge = challengeSchema.safeParse(decode(header));
  if (!challenge.success) throw new Error('the PAYMENT-REQUIRED header holds no x402 version 2 challenge');
  return challenge.data;
}

/** Why a 402 was given, in the seller's words; null when its header does not say. */
export function challengeErrorOf(headers: Headers): string | null {
  const challenge = challengeSchema.safeParse(decode(headers.get('payment-required') ?? ''));
  return challenge.success ? (challenge.data.error ?? null) : null;
}

function decode(header: string): unknown {
  try {
    return decodePaymentRequiredHeader(header);
  } catch {
    return null;
  }
}
