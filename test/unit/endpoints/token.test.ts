import { expect, test } from 'vitest';
import { createChainReads } from '../../../src/collector/store/reads.ts';
import { token } from '../../../src/endpoints/token.ts';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import {
  account,
  emptyChainDatabase,
  hash,
  putBlocks,
  putCoverage,
  putTrades,
  toHex,
} from '../../support/chain/chain-rows.ts';
import { collectedStatus, UNTIL } from './collected-fixture.ts';
import { run, TOKEN, useFixture } from './fixture.ts';

const given = useFixture();
const DAY = 86_400;

function configured(hasDistributor = true) {
  const db = emptyChainDatabase();
  const { sources } = given();
  return {
    db,
    sources: {
      ...sources,
      projectToken: TOKEN,
      reads: createChainReads(db),
      collected: { ...sources.collected, hasDistributor },
      collector: { status: collectedStatus },
    },
  };
}

function fill(db: Sqlite) {
  const insert = db.prepare('INSERT INTO token_events VALUES (?, 0, ?, ?, ?, ?, ?)');
  insert.run(1, hash(1), UNTIL - DAY - 1, 'burn', account(0xb), String(5n * 10n ** 20n));
  insert.run(2, hash(2), UNTIL - DAY, 'burn', account(0xb), String(25n * 10n ** 17n));
  insert.run(3, hash(3), UNTIL - DAY - 1, 'payout', account(0xc), '1500000');
  insert.run(4, hash(4), UNTIL, 'payout', account(0xc), '250000');
  putTrades(db, [{ block: 9, at: UNTIL - 9, baseE9: 20, usdcE9: 1, token: Buffer.from(TOKEN.slice(2), 'hex') }]);
}

test('burns, payouts and price of the configured token', async () => {
  const { db, sources } = configured();
  fill(db);
  const reply = await run(token, sources);
  expect(reply).toMatchObject({
    token: { address: TOKEN, symbol: 'TKN', decimals: 18 },
    burned: { total: '502.5', last24h: '2.5', unit: 'TKN', events: 2, since: null },
    payouts: { totalUsdc: '1.75', last24hUsdc: '0.25', recipients: 1 },
    rateUnit: 'USDC/TKN',
    price: { rate: '0.05', at: UNTIL - 9, block: 9, transaction: toHex(hash(9)) },
    note: null,
  });
  expect(reply.recent).toEqual([
    expect.objectContaining({ kind: 'payout', amount: '0.25', block: 4 }),
    {
      kind: 'payout',
      amount: '1.5',
      unit: 'USDC',
      account: toHex(account(0xc)),
      block: 3,
      at: UNTIL - DAY - 1,
      transaction: toHex(hash(3)),
    },
    expect.objectContaining({ kind: 'burn', amount: '2.5', unit: 'TKN', block: 2 }),
    expect.objectContaining({ kind: 'burn', amount: '500', block: 1 }),
  ]);
});

test('the sums say from where on they count, also once that block is rolled up', async () => {
  const { db, sources } = configured();
  fill(db);
  const since = async () => {
    const { burned, payouts } = (await run(token, sources)) as Record<'burned' | 'payouts', { since: unknown }>;
    expect(burned.since).toEqual(payouts.since);
    return burned.since;
  };
  expect(await since()).toBeNull();
  putCoverage(db, 'logs', [
    [400, 500],
    [700, 900],
  ]);
  putBlocks(db, [{ number: 400, at: UNTIL - 1000 }]);
  expect(await since()).toEqual({ block: 400, at: UNTIL - 1000 });
  // Whole blocks were stored before: their logs were searched, and are rolled up now.
  db.prepare("INSERT INTO facts VALUES ('first', '12')").run();
  expect(await since()).toEqual({ block: 12, at: null });
  db.prepare('INSERT INTO hours VALUES (?, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0)').run(UNTIL - 9 * DAY);
  expect(await since()).toEqual({ block: 12, at: UNTIL - 9 * DAY });
});

test('a token that does not return its decimals has no amounts', async () => {
  const { db, sources } = configured();
  fill(db);
  given().views[TOKEN] = {};
  expect(await run(token, sources)).toMatchObject({
    token: { address: TOKEN, symbol: null, decimals: null },
    burned: { total: null, last24h: null, events: 2 },
    payouts: { totalUsdc: '1.75' },
  });
});

test('members that are not configured are null, and the note says so', async () => {
  const { sources } = configured();
  const without = (projectToken: typeof TOKEN | null, hasDistributor: boolean) =>
    run(token, { ...sources, projectToken, collected: { ...sources.collected, hasDistributor } });
  expect(await without(null, false)).toMatchObject({
    token: null,
    burned: null,
    payouts: null,
    price: null,
    note: expect.stringMatching(/nothing to read/),
  });
  expect(await without(null, true)).toMatchObject({
    token: null,
    payouts: { recipients: 0 },
    note: expect.stringMatching(/No project token/),
  });
  expect(await without(TOKEN, false)).toMatchObject({
    burned: { events: 0, total: '0' },
    payouts: null,
    note: expect.stringMatching(/No distributor/),
  });
});
