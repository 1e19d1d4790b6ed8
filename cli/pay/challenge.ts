import { decodePaymentRequiredHeader, encodePaymentRequiredHeader } from '@x402/core/http';
import type { PaymentRequired } from '@x402/core/types';
import { z } from 'zod';

/** The members of a 402 that matter to a buyer. All others are kept as they are. */
const challengeSchema = z.looseObject({
  x402Version: z.literal(2),
  error: z.string().optional(),
  resource: z.looseObject({ url: z.string() }),
  accepts: z.array(z.unknown()),
});

type Challenge = z.output<typeof challengeSchema>;

/** Decodes a PAYMENT-REQUIRED header; `accepts` stays as it is. Throws when it is no x402 version 2 challenge. */
export function readChallenge(header: string): Challenge {
  const challenge = decode(header);
  if (!challenge) throw new Error('the PAYMENT-REQUIRED header holds no x402 version 2 challenge');
  return challenge;
}

/** The seller's reason for a 402; null when the header has none. */
export function challengeErrorOf(headers: Headers): string | null {
  return challengeIn(headers)?.error ?? null;
}

const challengeIn = (headers: Headers): Challenge | null => decode(headers.get('payment-required') ?? '');

/** Null for anything but a challenge of x402 version 2. */
function decode(header: string): Challenge | null {
  try {
    return challengeSchema.safeParse(decodePaymentRequiredHeader(header)).data ?? null;
  } catch {
    return null;
  }
}

/** A PAYMENT-REQUIRED header with the entries alone that `keeps` accepts. Null when none is left, and for anything but a challenge. */
export function keepEntries(header: string, keeps: (entry: unknown) => boolean): string | null {
  const challenge = decode(header);
  const accepts = challenge?.accepts.filter(keeps) ?? [];
  return accepts.length > 0 ? encodePaymentRequiredHeader({ ...challenge, accepts } as PaymentRequired) : null;
}
