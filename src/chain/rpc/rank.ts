/**
 * Why a request to the chain is made, most important first.
 * - settle: send a settlement, or answer a buyer about one.
 * - sale: simulate a payer's contract, or run a paid handler.
 * - collect: the collector, reconciliation that no buyer waits for, and the evidence of a reverted authorization that is presented again.
 * - offer: read payers that are not verified yet, in one request for many; or run the handler of an unpaid offer for a client that has paid lately,
 *   or for one of the few new clients that may go first.
 * - admit: ask the contract of an unverified payer for a signature, or run the handler of any other unpaid offer.
 * - free: free routes.
 */
export type Rank = 'settle' | 'sale' | 'collect' | 'offer' | 'admit' | 'free';

/** All of them, most important first. */
export const RANKS: readonly Rank[] = ['settle', 'sale', 'collect', 'offer', 'admit', 'free'];

/** The share of the providers' burst that a rank leaves to more important ranks. */
export const RESERVE: Readonly<Record<Rank, number>> = {
  settle: 0,
  sale: 0.1,
  collect: 0.2,
  offer: 0.35,
  admit: 0.45,
  free: 0.5,
};

/**
 * How long a request waits for its rank's allowance, in milliseconds. Then a settlement also asks providers whose allowance is used up, and every
 * other request is refused.
 */
export const WAIT_MS: Readonly<Record<Rank, number>> = {
  settle: 3000,
  sale: 2000,
  collect: 2000,
  offer: 2000,
  admit: 0,
  free: 0,
};
