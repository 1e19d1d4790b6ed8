import { expect, test } from 'vitest';
import { createChainReads } from '../../../src/store/chain/reads.ts';
import { followReads } from '../../../src/wiring/follow-reads.ts';
import { emptyChainDatabase } from '../../support/chain/chain-rows.ts';

test('a heartbeat after the database was closed changes nothing, so a process that stops answers to the end', () => {
  const db = emptyChainDatabase();
  const listeners: (() => void)[] = [];
  const link = { onHeartbeat: (listener: () => void) => void listeners.push(listener) };
  const reads = followReads(createChainReads(db, 'elsewhere'), link, () => db.open);
  const before = reads.version();
  db.close();
  for (const listener of listeners) listener();
  expect([listeners.length, reads.version()]).toEqual([1, before]);
});
