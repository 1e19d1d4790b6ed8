import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openLedgerDatabase } from '../../../src/store/database.ts';
import type { LedgerStore } from '../../../src/store/ledger-port.ts';
import { createLedgerStore } from '../../../src/store/ledger-store.ts';
import { hash32, reservation } from '../../support/ledger-rows.ts';

let folder: string;
let stores: [LedgerStore, LedgerStore];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-processes-'));
  const open = () => createLedgerStore(openLedgerDatabase(join(folder, 'ledger.db')));
  stores = [open(), open()];
});
afterEach(async () => {
  for (const store of stores) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

test('of two reservations whose ids do not come in the order of their inserts, at least one counts the other', async () => {
  const [here, there] = stores;
  // Its id is older, its insert is younger: as when two processes reserve in the same millisecond.
  const [early, late] = [reservation('02', 'early'), reservation('01', 'late')];
  await here.reserve(early, 0, null);
  expect(await here.openBefore(early, early.id)).toBe(0n);
  await there.reserve(late, 0, null);
  expect(await there.openBefore(late, late.id)).toBe(early.amount);
});

test('in the usual order the first counts nothing and the second the first', async () => {
  const [here, there] = stores;
  const [first, second] = [reservation('01', 'first'), reservation('02', 'second')];
  await here.reserve(first, 0, null);
  await there.reserve(second, 0, null);
  expect(await here.openBefore(first, first.id)).toBe(0n);
  expect(await there.openBefore(second, second.id)).toBe(first.amount);
});

test('a row for which a transaction was noted is not forgotten any more, in whatever state it is asked for', async () => {
  const [serving, settling] = stores;
  await serving.reserve(reservation('01', 'sent'), 0, null);
  await serving.reserve(reservation('02', 'unsent'), 0, null);
  for (const id of ['01', '02'])
    await serving.move(id, ['reserved'], 'settling', { signature: Buffer.alloc(65, 1) }, { store: Buffer.from('{}') });
  await settling.noteBroadcast([{ id: '01', transaction: hash32('transaction') }], ['settling']);
  expect(await serving.release('01', ['settling'])).toBe(false);
  expect((await serving.get('01'))?.state).toBe('settling');
  expect(await serving.release('02', ['settling'])).toBe(true);
  expect(await serving.get('02')).toBeNull();
});

test('what is left behind is what no living process holds', async () => {
  const [store] = stores;
  for (const bootId of ['a', 'b', 'c']) await store.reserve(reservation(bootId, bootId, { bootId }), 0, null);
  const left = async (living: string[]) => (await store.listLeftBehind(living, 10)).map(({ bootId }) => bootId);
  expect(await left(['a', 'b', 'c'])).toEqual([]);
  expect(await left(['a', 'c'])).toEqual(['b']);
  expect(await left(['a'])).toEqual(['b', 'c']);
});
