import type { PromiseName } from './promise.ts';

/** A fault that the service is known to have: until it is mended its breaches are counted, and end no seed. */
export interface KnownFault {
  readonly name: string;
  readonly promise: PromiseName;
  readonly detail: RegExp;
}

/** Emptied as the mends arrive. */
export const KNOWN_FAULTS: readonly KnownFault[] = [
  {
    name: '8: charged is told falsely',
    promise: 'charged was true',
    detail: /409 payment_in_flight|409 payment_identifier_conflict/,
  },
  {
    name: '4: griefers are sold to again',
    promise: 'the relayer keeps its bounds',
    detail: /a wallet that had failed it|the day’s failures were spent|failed alike/,
  },
  {
    name: '1: a dear answer for a cheap payment',
    promise: 'no answer without its full price',
    detail: /were paid for what costs/,
  },
  { name: '2: a facilitator can be shut', promise: 'honest buyers are served', detail: /settlement_unavailable/ },
  {
    name: '3: providers can be exhausted',
    promise: 'honest buyers are served',
    detail: /upstream_failed|settlement_unknown/,
  },
  { name: '5: what has run out is sent', promise: 'the relayer keeps its bounds', detail: /had run out/ },
  {
    name: '6: one payment, two ledgers',
    promise: 'no payment is sold twice',
    detail: /of gateway .*(another answer than before|sold before for|delivered . times)/,
  },
  { name: '7: the Gateway works for nothing', promise: 'nothing is done for who cannot pay', detail: /of gateway/ },
  {
    name: '8: charged is told falsely',
    promise: 'charged was true',
    detail: /the money had gone to the seller before/,
  },
];
