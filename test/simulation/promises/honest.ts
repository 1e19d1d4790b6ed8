import type { HonestBuyers } from '../actors/honest.ts';
import { HONEST_NAMES } from '../world/payers.ts';
import type { World } from '../world/world.ts';
import type { Tell } from './promise.ts';

/** Fewer purchases tell nothing of a rate. */
const LEAST = 15;
const AGREED = 0.95;

/**
 * After the last move, where nothing of the world was broken: honest buyers were served at the agreed rate within three tries. Returns how many purchases
 * were judged: none where something was broken, or where too few have ended.
 */
export function checkHonest({ scenario }: World, honest: HonestBuyers, tell: Tell): number {
  const ended = honest.purchases().filter((one) => one.ended);
  if (!scenario.fair || ended.length < LEAST) return 0;
  const failed = ended.filter((one) => !one.served);
  if (failed.length <= ended.length * (1 - AGREED)) return ended.length;
  const lasts = [...new Set(failed.map(({ last }) => last))].slice(0, 4).join(', ');
  tell(
    'honest buyers are served',
    `${failed.length} of ${ended.length} calls were not served in three tries: ${lasts}`,
  );
  return ended.length;
}

/** What one payer's authorization did is no fault of the rail: while nothing is wrong with who settles, honest buyers are not told that nobody does. */
export function watchRails({ scenario, book }: World, tell: Tell): void {
  if (!scenario.fair) return;
  book.onAnswered(({ by, rail, reported }) => {
    const isRemote = rail === 'gateway' || (rail === 'usdc' && scenario.settler !== 'relayer');
    if (isRemote && HONEST_NAMES.includes(by) && reported?.code === 'settlement_unavailable')
      tell('honest buyers are served', `${by} was told that payments over ${rail} cannot be settled, and they can`);
  });
}
