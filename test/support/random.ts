import { hash, randomBytes } from 'node:crypto';

/** The seed of this run: SEED, or a new one. Print it where a failure must be repeatable. */
export const seed = process.env.SEED ?? randomBytes(4).toString('hex');

/** A repeatable stream of numbers in [0, 1), made from the run's seed and a name (mulberry32). */
export function seededRandom(name: string, from: string = seed): () => number {
  let state = hash('sha256', `${from}/${name}`, 'buffer').readUInt32LE(0);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** The items in an order that `random` draws. */
export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const drawn = items.map((item) => ({ item, at: random() }));
  return drawn.sort((a, b) => a.at - b.at).map(({ item }) => item);
}
