import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { describePorts, useLedger } from '../support/ledger/ledger-adapters.ts';

describePorts('the keys of a ledger', (adapter) => {
  const ledger = useLedger(adapter, { synced: false });

  test('are made once: later calls get the first key, whatever they bring', async () => {
    const [first, second] = [randomBytes(32), randomBytes(32)];
    expect(Buffer.from(await ledger.stores.keys.keep('a', first))).toEqual(first);
    expect(Buffer.from(await ledger.stores.keys.keep('a', second))).toEqual(first);
    expect(Buffer.from(await ledger.stores.keys.keep('b', second))).toEqual(second);
  });

  test('are one for all of many concurrent calls', async () => {
    const calls = Array.from({ length: 20 }, () => ledger.stores.keys.keep('c', randomBytes(32)));
    const keys = new Set((await Promise.all(calls)).map((key) => Buffer.from(key).toString('hex')));
    expect(keys.size).toBe(1);
  });
});
