import type { HonestBuyers } from '../actors/honest.ts';
import type { World } from '../world/world.ts';
import type { Tell } from './promise.ts';

/** Fewer purchases tell nothing of a rate. */
const LEAST = 15;
const AGREED = 0.95;

/** At rest, where nothing of the world was broken: honest buyers were served at the agreed rate within three tries. */
export function checkHonest({ scenario }: World, honest: HonestBuyers, tell: Tell): void {
  const ended = honest.purchases().filter((one) => one.ended);
  if (!scenario.fair || ended.length < LEAST) return;
  const failed = ended.filter((one) => !one.served);
  if (failed.length <= ended.length * (1 - AGREED)) return;
  const lasts = [...new Set(failed.map(({ last }) => last))].slice(0, 4).join(', ');
  tell(
    'honest buyers are served',
    `${failed.length} of ${ended.length} calls were not served in three tries: ${lasts}`,
  );
}
