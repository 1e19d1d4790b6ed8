/** Bounds of a run: the macros of a model that limit its state space. */
export type Bounds = Readonly<Record<string, number>>;

/** Bounds as a table shows them. */
export function boundsText(bounds: Bounds): string {
  return Object.entries(bounds)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}

/** A guard of the code as a switch of a model: `-DOFF=<name>` turns it off. */
export interface Guard {
  readonly name: string;
  /** The invariant that fails without it. */
  readonly breaks: string;
  /** Another invariant that fails without it. */
  readonly breaksToo?: string;
  /** The file of the code that holds it. */
  readonly code: string;
  /** The bounds of the run that finds the fault. By default the model's first small run. */
  readonly bounds?: Bounds;
  /** A guard that must be off too: this one is a second line behind it. */
  readonly behind?: string;
}

export interface Model {
  /** Its file in docs/model, without `.pml`. */
  readonly name: string;
  /** In the order of their numbers in the file, from 1. */
  readonly invariants: readonly string[];
  /** Runs that take seconds. Together they reach every guard. */
  readonly small: readonly [Bounds, ...Bounds[]];
  /** Runs that take minutes and gigabytes. */
  readonly full: readonly Bounds[];
  /** In the order of their numbers in the file, from 1. */
  readonly guards: readonly Guard[];
}

const NO_FAULTS = { CALLS: 2, CONTENTS: 2, CRASHES: 0, PAUSES: 0 };
const CRASH = { CALLS: 2, CONTENTS: 1, CRASHES: 1, PAUSES: 0 };
const PAUSE = { CALLS: 2, CONTENTS: 1, CRASHES: 0, PAUSES: 1 };

const AUTHORIZATION: Model = {
  name: 'authorization',
  invariants: [
    'ONE_ANSWER',
    'FULL_PRICE',
    'OWN_ANSWER',
    'PAID_IS_SERVED',
    'FREE_IS_FREE',
    'NO_402_FOR_PAID',
    'RIGHT_ANSWER',
  ],
  small: [NO_FAULTS, CRASH, PAUSE],
  full: [
    { CALLS: 2, CONTENTS: 2, CRASHES: 1, PAUSES: 0 },
    { CALLS: 2, CONTENTS: 1, CRASHES: 1, PAUSES: 1 },
    { CALLS: 3, CONTENTS: 1, CRASHES: 0, PAUSES: 0 },
  ],
  guards: [
    { name: 'ROW_FIRST', breaks: 'NO_402_FOR_PAID', code: 'src/payment/sale.ts' },
    { name: 'SECOND_READ', breaks: 'NO_402_FOR_PAID', code: 'src/payment/sale.ts' },
    { name: 'SAME_CONTENT', breaks: 'PAID_IS_SERVED', code: 'src/payment/known-payment.ts' },
    { name: 'SAME_REQUEST', breaks: 'RIGHT_ANSWER', code: 'src/payment/known-payment.ts' },
    { name: 'FIRST_PRESENTER', breaks: 'OWN_ANSWER', code: 'src/payment/known-payment.ts' },
    { name: 'IN_FLIGHT_IS_UNKNOWN', breaks: 'FREE_IS_FREE', code: 'src/payment/known-payment.ts' },
    { name: 'EVIDENCE_BEFORE_REUSE', breaks: 'NO_402_FOR_PAID', code: 'src/payment/known-payment.ts' },
    {
      name: 'ONE_INSERT',
      breaks: 'PAID_IS_SERVED',
      breaksToo: 'ONE_ANSWER',
      code: 'src/store/payments.ts',
    },
    { name: 'OWN_ROW', breaks: 'PAID_IS_SERVED', code: 'src/store/payments.ts', bounds: PAUSE },
    { name: 'ANSWER_BEFORE_SETTLEMENT', breaks: 'PAID_IS_SERVED', code: 'src/payment/sale.ts' },
    { name: 'UNKNOWN_IS_503', breaks: 'NO_402_FOR_PAID', code: 'src/payment/refusal.ts' },
    { name: 'EVIDENCE_IN_LOGS', breaks: 'FULL_PRICE', code: 'src/payment/usdc/evidence.ts' },
    {
      name: 'NOTE_BEFORE_SEND',
      breaks: 'PAID_IS_SERVED',
      code: 'src/payment/relayer/requests.ts',
      bounds: CRASH,
    },
    { name: 'NOTE_DECIDES', breaks: 'PAID_IS_SERVED', code: 'src/store/payments.ts', bounds: CRASH },
    { name: 'NOTE_IN_OPEN_ROW', breaks: 'PAID_IS_SERVED', code: 'src/store/payments.ts', bounds: CRASH },
    { name: 'WAIT_FOR_OWN', breaks: 'PAID_IS_SERVED', code: 'src/payment/relayer/verdicts.ts' },
    { name: 'LAST_CHECK', breaks: 'FULL_PRICE', code: 'src/payment/receipt.ts', behind: 'SAME_CONTENT' },
  ],
};

const RAIL = 'src/payment/channels';
const CHANNEL: Model = {
  name: 'channel',
  invariants: [
    'ESCROW_COVERS',
    'NO_MORE_THAN_SIGNED',
    'ONE_CHARGE_ONE_ANSWER',
    'ACKNOWLEDGED_IS_KEPT',
    'OWN_ANSWER',
    'RIGHT_ANSWER',
  ],
  small: [{ CALLS: 2 }],
  full: [{ CALLS: 3 }],
  guards: [
    { name: 'SAME_BUYER', breaks: 'OWN_ANSWER', code: `${RAIL}/channel.ts` },
    { name: 'SAME_REQUEST', breaks: 'RIGHT_ANSWER', code: `${RAIL}/channel.ts` },
    { name: 'EXACT_CEILING', breaks: 'ONE_CHARGE_ONE_ANSWER', code: `${RAIL}/voucher-sale.ts` },
    { name: 'COMPARE', breaks: 'ONE_CHARGE_ONE_ANSWER', code: 'src/store/channels.ts' },
    { name: 'CHARGE_BEFORE_ANSWER', breaks: 'ACKNOWLEDGED_IS_KEPT', code: `${RAIL}/voucher-sale.ts` },
    { name: 'COVER', breaks: 'ESCROW_COVERS', code: `${RAIL}/voucher-sale.ts` },
    { name: 'REFUND_HOLDS', breaks: 'ESCROW_COVERS', code: 'src/store/channels.ts' },
    { name: 'REFUND_LESS_CHARGES', breaks: 'ESCROW_COVERS', code: `${RAIL}/refund.ts` },
    { name: 'DEPOSIT_ONCE', breaks: 'ESCROW_COVERS', code: 'src/store/payments.ts' },
    { name: 'FRESH_STATE', breaks: 'ESCROW_COVERS', code: `${RAIL}/channel.ts` },
    { name: 'CLAIM_IN_TIME', breaks: 'ESCROW_COVERS', code: `${RAIL}/withdrawals.ts` },
    { name: 'SIGNED', breaks: 'NO_MORE_THAN_SIGNED', code: `${RAIL}/scheme.ts` },
    { name: 'PASSED_ON', breaks: 'ESCROW_COVERS', code: 'src/payment/usdc/evidence.ts' },
  ],
};

/** The models of docs/model, with the runs that check them. */
export const MODELS: readonly Model[] = [AUTHORIZATION, CHANNEL];
