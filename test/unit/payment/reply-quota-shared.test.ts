import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLedger } from '../../../src/payment/ledger.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { sale, storedIntent } from '../../support/ledger/ledger-rows.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-quota-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('two processes that keep replies in one store do not overfill it, whichever of them counted last', async () => {
  const storeBytes = 1000;
  const open = (bootId: string) => {
    const store = storesOf(openTestLedger(join(folder, 'ledger.db'))).payments;
    const limits = { storeBytes, sharedBy: () => 2, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
    return { store, ledger: createLedger({ store, clock: systemClock, bootId, ...limits }) };
  };
  const both = [open('a'), open('b')];
  const keep = async ({ ledger }: (typeof both)[number]) => {
    const id = String(await ledger.reserve(sale(String(Math.random())), false));
    return ledger.storeIntent(id, storedIntent('x'.repeat(50)));
  };
  for (const one of both) {
    while (await keep(one));
    expect(one.ledger.hasRoom()).toBe(false);
  }
  expect(await both[0]!.store.replyBytes()).toBe(storeBytes);
  for (const { ledger } of both) {
    await ledger.purge();
    expect(ledger.hasRoom()).toBe(false);
  }
  for (const { store } of both) await store.close();
});
