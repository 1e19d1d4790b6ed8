import type { Move } from '../moves/move.ts';

/** Whether a list of moves still breaks the same promise. */
export type StillBreaks = (moves: readonly Move[]) => Promise<boolean>;

/**
 * Leaves out moves as long as the same promise still breaks: halves, then quarters, down to single ones (delta debugging, Zeller 1999). At the most
 * `tries` runs, because a list that is a little too long is better than none.
 */
export async function shorten(moves: readonly Move[], breaks: StillBreaks, tries: number): Promise<readonly Move[]> {
  let kept = [...moves];
  let left = tries;
  for (let size = Math.ceil(kept.length / 2); size >= 1; ) {
    let removed = false;
    for (let at = 0; at < kept.length && left > 0; ) {
      const without = [...kept.slice(0, at), ...kept.slice(at + size)];
      left -= 1;
      if (without.length > 0 && (await breaks(without))) {
        kept = without;
        removed = true;
      } else at += size;
    }
    if (left === 0) break;
    if (size === 1 && !removed) break;
    size = removed && size === 1 ? 1 : Math.floor(size / 2) || (removed ? 1 : 0);
  }
  return kept;
}
