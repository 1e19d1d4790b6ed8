import { systemClock as clock } from '../../../src/lib/clock.ts';
import { transactionText } from '../../../src/payment/settler.ts';
import type { LedgerStore, Payment, PaymentState } from '../../../src/store/ports/payments.ts';
import { type StoppedService, withHeldLedger, withPayments } from './stopped-service.ts';

const OPEN: readonly PaymentState[] = ['reserved', 'settling', 'unknown'];
const LOOK_MS = 250;
const RECONCILES_ITSELF = 'it reconciles by itself every few seconds; to do it by hand, stop it first';

/**
 * Brings every open payment to its final state, with the service's own parts. Returns whether none is open any more.
 * A payment that was never sent is released. The others are looked up on the chain, and sent again where the chain does not know them.
 * Throws while a service uses the ledger, and for a payment of another network than the configured one.
 */
export function reconcileLedger(service: StoppedService): Promise<boolean> {
  const { timeoutMs, print, say } = service;
  return withHeldLedger(service, RECONCILES_ITSELF, async (held) => {
    const { payments: store } = held.ledger.stores;
    const open = await store.listByState(OPEN, Number.MAX_SAFE_INTEGER);
    say(`${open.length} open payments`);
    if (open.length === 0) return true;
    checkNetwork(open, held.config.network.caip2);
    await withPayments(held, () => untilEnded(store, timeoutMs, say));
    const ends = await Promise.all(open.map(async ({ id }) => ({ id, row: await store.get(id) })));
    for (const { id, row } of ends) print(`${id} ${endOf(row)}`);
    return ends.every(({ row }) => row === null || !OPEN.includes(row.state));
  });
}

/** Another network's chain would report every authorization as unused. */
function checkNetwork(open: readonly Payment[], configured: string): void {
  const foreign = open.find(({ network }) => network !== configured);
  if (foreign) throw new Error(`payment ${foreign.id} is of ${foreign.network}; the configuration says ${configured}`);
}

/** Waits until no payment is open, `timeoutMs` at the most. */
async function untilEnded(
  store: Pick<LedgerStore, 'listByState'>,
  timeoutMs: number,
  say: StoppedService['say'],
): Promise<void> {
  const giveUpAt = clock.nowMs() + timeoutMs;
  let last = -1;
  for (;;) {
    const left = (await store.listByState(OPEN, Number.MAX_SAFE_INTEGER)).length;
    if (left !== last) say(`${left} still open`);
    last = left;
    if (left === 0 || clock.nowMs() >= giveUpAt) return;
    await clock.sleep(LOOK_MS);
  }
}

function endOf(row: Payment | null): string {
  if (row === null) return 'released: nothing had been sent';
  if (row.state === 'settled') return `settled ${transactionText(row.transaction) ?? ''} in block ${row.block}`;
  if (row.state === 'failed') return `failed, not charged: ${row.reason}`;
  return `still ${row.state}`;
}
