import { setTimeout as delay } from 'node:timers/promises';
import type { PaymentRequirements } from '@x402/core/types';
import { readChannelOffer } from '../../cli/ways/channel-offer.ts';

/** The service looks for the contracts within seconds of its start, and offers channels once it has found them. */
const OFFERED_WITHIN_MS = 120_000;
const OFFERED_POLL_MS = 200;

/** Waits until the 402 of this URL offers payment channels, and returns their entry. Throws for another answer than a 402, and after two minutes. */
export async function untilChannelsOffered(
  url: string,
  signal: AbortSignal = new AbortController().signal,
): Promise<PaymentRequirements> {
  for (const untilMs = Date.now() + OFFERED_WITHIN_MS; Date.now() < untilMs; ) {
    const answer = await fetch(url, { signal });
    await answer.body?.cancel();
    if (answer.status !== 402) throw new Error(`the unpaid call answered ${answer.status} instead of 402`);
    const offer = readChannelOffer(answer.headers.get('payment-required') ?? '');
    if (offer) return offer.requirement;
    await delay(OFFERED_POLL_MS, undefined, { signal });
  }
  throw new Error(`payment channels were not offered within ${OFFERED_WITHIN_MS / 1000} s`);
}
