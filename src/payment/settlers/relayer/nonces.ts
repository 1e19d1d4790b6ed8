/**
 * Gives the relayer's nonces by one rule: the lowest nonce that the chain has not used and no transaction in flight holds. So a nonce that a node
 * refused is given next, and no gap stays below a waiting transaction.
 */
export function createNonces() {
  // Null until the chain is asked, and again when a third party may have used a nonce.
  let floor: number | null = null;
  // Known from our own receipts, which no node can take back.
  let proven = 0;
  let provenBlock = 0;

  return {
    known: (): boolean => floor !== null,
    /** Takes a node's count of mined transactions. The node may lag behind or lie. */
    learn(mined: number): void {
      floor = Math.max(mined, proven);
    },
    /** Notes that our transaction with this nonce was mined in this block. All lower nonces were used by then. */
    passed(nonce: number, block: number): void {
      proven = Math.max(proven, nonce + 1);
      provenBlock = Math.max(provenBlock, block);
      if (floor !== null) floor = Math.max(floor, proven);
    },
    /** Whether no transaction under this nonce can still be mined. */
    isPast: (nonce: number): boolean => nonce < proven,
    /** At this block, each transaction under a past nonce is mined or can no longer be mined. */
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
