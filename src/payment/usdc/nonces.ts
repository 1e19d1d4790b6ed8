/**
 * The relayer's nonces by one rule: the lowest number that the chain has not used and no transaction in flight holds.
 * So a number that a node refused is the next to be given, and no gap can stay below a waiting transaction.
 */
export function createNonces() {
  // Null until the chain was asked, and again when it may have moved without us.
  let floor: number | null = null;

  return {
    known: (): boolean => floor !== null,
    /** What the chain says: the count of mined transactions. */
    learn(mined: number): void {
      floor = mined;
    },
    /** One of ours was mined. */
    passed(nonce: number): void {
      if (floor !== null) floor = Math.max(floor, nonce + 1);
    },
    forget(): void {
      floor = null;
    },
    next(held: ReadonlySet<number>): number {
      if (floor === null) throw new Error('the chain was not asked for the nonce yet');
      let nonce = floor;
      while (held.has(nonce)) nonce++;
      return nonce;
    },
  };
}
