/**
 * The relayer's nonces by one rule: the lowest number that the chain has not used and no transaction in flight holds.
 * So a number that a node refused is the next to be given, and no gap can stay below a waiting transaction.
 */
export function createNonces() {
  // Null until the chain was asked, and again when it may have moved without us.
  let floor: number | null = null;
  // By receipts of our own, which no node can take back.
  let proven = 0;
  let provenBlock = 0;

  return {
    known: (): boolean => floor !== null,
    /** What a node says: the count of mined transactions. It may lag behind, or lie. */
    learn(mined: number): void {
      floor = Math.max(mined, proven);
    },
    /** One of ours was mined in this block, so everything below it was too, there or before. */
    passed(nonce: number, block: number): void {
      proven = Math.max(proven, nonce + 1);
      provenBlock = Math.max(provenBlock, block);
      if (floor !== null) floor = Math.max(floor, proven);
    },
    /** Whether what was sent under this nonce can no longer be mined, unless it was. */
    isPast: (nonce: number): boolean => nonce < proven,
    /** At this block, everything that is past has been mined, or never will be. */
    provenBlock: (): number => provenBlock,
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

export type Nonces = ReturnType<typeof createNonces>;
