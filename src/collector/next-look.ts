import { DeployKinds } from '../store/chain/rows.ts';

/** Seconds after its creation at which a contract is looked at again: most are set up by the next transactions, some by hand on the same day. */
const LOOKS = [60, 900, 21_600];

/** When a contract of these kinds is looked at again, in Unix seconds; null: no more, or it has its symbol. `now` is the chain's time. */
export function nextLook(createdAt: number, kinds: number | null, now: number): number | null {
  if (kinds === null || (kinds & DeployKinds.token) !== 0) return null;
  const age = LOOKS.find((seconds) => createdAt + seconds > now);
  return age === undefined ? null : createdAt + age;
}
