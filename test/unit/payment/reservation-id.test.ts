import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLedger } from '../../../src/payment/ledger.ts';
import { adapters, type OpenLedger } from '../../support/ledger/ledger-adapters.ts';
import { reservation } from '../../support/ledger/ledger-rows.ts';

let opened: OpenLedger;
beforeEach(async () => {
  opened = await (adapters[0] as (typeof adapters)[number]).open();
});
afterEach(() => opened.close());

test('the caller of a reservation gets the id before the row can exist, so maintenance never releases a row that is being served', async () => {
  const reported: string[] = [];
  const heardFirst: boolean[] = [];
  const store = opened.stores.payments;
  const watched = {
    ...store,
    reserve: (...given: Parameters<typeof store.reserve>) => {
      heardFirst.push(reported.includes(given[0].id));
      return store.reserve(...given);
    },
  };
  const limits = { storeBytes: 1000, keepSeconds: 1, maxDeliveries: 1, maxOpen: 0 };
  const ledger = createLedger({ store: watched, clock: systemClock, bootId: 'boot', ...limits });
  const id = await ledger.reserve(reservation('any', 'n'), false, (given) => reported.push(given));
  expect([id, heardFirst]).toEqual([reported[0], [true]]);
  expect(await ledger.reserve(reservation('any', 'n'), false, (given) => reported.push(given))).toBeNull();
  expect(reported).toHaveLength(2);
});
