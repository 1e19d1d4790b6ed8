import { openLedgerDatabase } from '../../../src/store/db/sqlite.ts';
import { storesOf } from './fresh-ledger.ts';
import { hash32, reservation } from './ledger-rows.ts';

/** The instructions for one round. All racers do the same at the same time. */
export interface Round {
  readonly number: number;
  /** Reservations that it tries at once. */
  readonly tries: number;
  /** Whether all are of one authorization, or each of its own under one identifier. */
  readonly about: 'authorization' | 'identifier';
}

// A process of its own, which reserves in a ledger that others reserve in: `ledger-racer.ts FILE NAME`.
// It prints `ready`, then answers each round with its wins, and ends when its input closes.
const [file = '', name = ''] = process.argv.slice(2);
const store = storesOf(openLedgerDatabase(file)).payments;

process.on('message', async ({ number, tries, about }: Round) => {
  const tried = await Promise.all(
    Array.from({ length: tries }, (_, at) => {
      const id = `${name}-${number}-${at}`;
      const nonce = about === 'authorization' ? `round ${number}` : id;
      const identifierHash = about === 'identifier' ? hash32(`round ${number}`) : null;
      return store.reserve(reservation(id, nonce, { identifierHash }), 0, null);
    }),
  );
  process.send?.(tried.filter(Boolean).length);
});
process.once('disconnect', () => store.close());
process.send?.('ready');
