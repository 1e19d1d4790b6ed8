/** How often a handler runs before anything is paid, and what the lookup says while it runs for a payment and when the sale has ended. */
export const KINDS = {
  signed: { runsBefore: 0, serving: 'reserved', end: 'settled' },
  paid: { runsBefore: 1, serving: 'claimed', end: 'delivered' },
} as const;
