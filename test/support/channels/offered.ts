import { until } from '../service/workers.ts';
import type { Requirement } from '../usdc/payments.ts';
import { findChannelEntry } from './channel-buyer.ts';

/**
 * Waits until the 402 of this URL offers payment channels, and returns their entry. The service finds the contracts some time after its start, and
 * offers no channel while too much waits for its claim.
 */
export async function untilChannelsAreOffered(url: string): Promise<Requirement> {
  let entry: Requirement | undefined;
  await until('channels are offered', async () => {
    const answer = await fetch(url);
    await answer.body?.cancel();
    // Where nothing else is offered, there is no 402 before the contracts are found.
    const required = answer.headers.get('payment-required');
    entry = required === null ? undefined : findChannelEntry(required);
    return entry !== undefined;
  });
  if (!entry) throw new Error('no entry for channels was found');
  return entry;
}
