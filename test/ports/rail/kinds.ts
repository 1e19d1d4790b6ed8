/**
 * For each kind of rail: how often the handler runs before a payment is presented, the state that the lookup shows while a payment is served, and the
 * state when the sale has ended. A sale that is settled by the write of its answer has no row before.
 */
export const KINDS = {
  'signed-first': { runsBefore: 0, serving: 'reserved', end: 'settled' },
  escrowed: { runsBefore: 0, serving: null, end: 'settled' },
  'paid-first': { runsBefore: 1, serving: 'claimed', end: 'delivered' },
} as const;
