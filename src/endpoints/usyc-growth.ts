import type { Rounds } from '../chain/oracle.ts';
import { DAY_SECONDS } from './fee-fields.ts';
import { percentOf } from './percent-fields.ts';

const YEAR_DAYS = 365;
/** Fine enough for what is shown: a growth is an exponential, so it goes through a float, with some 15 good digits. */
const FINENESS = 1e9;

/**
 * What the price would grow by in a year, in percent, had it gone on as over the last `days`: (newest / earlier)^(365 / days between the two) - 1,
 * where earlier is the newest round at least `days` older than the newest one. Rounds are newest first; null when they do not reach back so far.
 */
export function annualisedGrowth(rounds: Rounds, days: number): string | null {
  const [newest] = rounds;
  const earlier = rounds.find(({ at }) => at <= newest.at - days * DAY_SECONDS);
  if (earlier === undefined) return null;
  const elapsedDays = (newest.at - earlier.at) / DAY_SECONDS;
  const growth = (Number(newest.answer) / Number(earlier.answer)) ** (YEAR_DAYS / elapsedDays) - 1;
  // A price of nonsense may grow past what a number holds.
  return Number.isFinite(growth * FINENESS) ? percentOf(BigInt(Math.round(growth * FINENESS)), BigInt(FINENESS)) : null;
}
