import type { Rounds } from '../chain/oracle.ts';
import { DAY_SECONDS } from './fee-fields.ts';
import { percentOf } from './percent-fields.ts';

const YEAR_DAYS = 365;
/** Digits kept of a growth rate. It is an exponential, so it is computed as a float with about 15 significant digits. */
const FINENESS = 1e9;

/**
 * The price's growth per year in percent, at the pace of the last `days`: (newest / earlier)^(365 / days between the two) - 1.
 * `earlier` is the newest round that is at least `days` older than the newest one.
 * `rounds` has the newest first. Null when the rounds do not reach back far enough.
 */
export function annualisedGrowth(rounds: Rounds, days: number): string | null {
  const [newest] = rounds;
  const earlier = rounds.find(({ at }) => at <= newest.at - days * DAY_SECONDS);
  if (earlier === undefined) return null;
  const elapsedDays = (newest.at - earlier.at) / DAY_SECONDS;
  const growth = (Number(newest.answer) / Number(earlier.answer)) ** (YEAR_DAYS / elapsedDays) - 1;
  // An absurd price can give a growth that a float cannot hold.
  return Number.isFinite(growth * FINENESS) ? percentOf(BigInt(Math.round(growth * FINENESS)), BigInt(FINENESS)) : null;
}
