/** A number in [0, 1) that depends only on the seed and the arguments. */
export type Dice = (...about: readonly (string | number)[]) => number;

/**
 * Random numbers by content (cyrb53): the same arguments give the same number, in any order of calls. So two relayers that send the same requests at
 * the same time meet the same world.
 */
export function createDice(seed: string): Dice {
  return (...about) => {
    const text = `${seed}|${about.join('|')}`;
    let [a, b] = [0xdeadbeef, 0x41c6ce57];
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      a = Math.imul(a ^ code, 2654435761);
      b = Math.imul(b ^ code, 1597334677);
    }
    a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
    b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
    return (4294967296 * (2097151 & b) + (a >>> 0)) / 2 ** 53;
  };
}

export const between = (share: number, from: number, to: number): number => from + Math.floor(share * (to - from + 1));
export const pick = <T>(share: number, choices: readonly T[]): T => choices[Math.floor(share * choices.length)] as T;
