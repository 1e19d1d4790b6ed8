import { createLedgerStore, createWaitingBytes } from '../../../src/store/payments.ts';
import type { PaymentChange } from '../../../src/store/ports/payments.ts';

const BYTES = new Uint8Array();
const CHANGES: Required<PaymentChange> = {
  bootId: '',
  signature: BYTES,
  calldata: BYTES,
  checkedBlock: 0,
  payerHasCode: true,
  charged: 0n,
  transaction: BYTES,
  block: 0,
  reason: '',
  settlingAt: 0,
  endedAt: 0,
};

async function never(): Promise<never> {
  return new Promise(() => {});
}

/** Makes the texts of payments that are made when they are first used: a move's text is made for the columns that it sets. */
export function makeEveryMove(): void {
  const store = createLedgerStore(
    { read: async () => [], look: never, write: never, share: never, decide: never },
    createWaitingBytes(),
    { ping: never, close: never },
  );
  const single = Object.entries(CHANGES).map(([name, value]) => ({ [name]: value }));
  for (const to of ['reserved', 'settling', 'unknown', 'settled', 'failed'] as const)
    for (const change of [{}, CHANGES, ...single])
      for (const reply of [undefined, 'drop', { store: BYTES }, { keepUntil: 0 }] as const)
        void store.move('', [to], to, change, reply);
  void store.listByState(['reserved', 'settling', 'unknown'], 1);
}
