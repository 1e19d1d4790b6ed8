/**
 * For each kind of rail: how often the handler runs before a payment is presented, the state that the lookup shows while a payment is served, and the
 * state when the sale has ended.
 */
export const KINDS = {
  'signed-first': { runsBefore: 0, serving: 'reserved', end: 'settled' },
  'paid-first': { runsBefore: 1, serving: 'claimed', end: 'delivered' },
} as const;
