import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrate } from '../../../../src/lib/sqlite-file.ts';
import { stepsOf } from '../../../../src/store/db/migrate.ts';
import { openLedgerDatabase } from '../../../../src/store/db/sqlite.ts';
import { createSqliteStores } from '../../../../src/store/open.ts';
import { openLedgerReports } from '../../../../src/store/reports.ts';
import { gathered } from '../../../support/gathered.ts';
import { channelState, channelTerms, SEEN_AT, voucherSale } from '../../../support/ledger/channel-rows.ts';
import { hash32, reservation } from '../../../support/ledger/ledger-rows.ts';

const STATES = ['reserved', 'settling', 'unknown', 'settled', 'failed'] as const;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'channels-migration-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A ledger's file of version 015 with one payment in each state. */
function fileOfBefore(): string {
  const file = join(folder, 'ledger.db');
  const db = new Database(file);
  migrate(
    db,
    stepsOf('sqlite').filter(({ version }) => version < 16),
  );
  const put = db.prepare(
    `INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after, valid_before, signature,
                                request_hash, client_hash, reserved_at, ended_at, price, charged)
     VALUES (@id, 'eip155:5042', @contract, @payer, @nonce, @id, 'b', 1000, @payer, '0', '1', @signature, @nonce, @nonce, 1, @endedAt, 900, 1000)`,
  );
  for (const id of STATES) {
    const isOpen = id === 'settling' || id === 'unknown';
    const rest = { signature: isOpen ? Buffer.alloc(65, 1) : null, endedAt: id === 'settled' ? 5 : null };
    put.run({ id, contract: Buffer.alloc(20, 0x36), payer: Buffer.alloc(20, 9), nonce: hash32(id), ...rest });
  }
  db.close();
  return file;
}

test('a ledger from before channels keeps its payments of every state, without a channel, and they end as before', async () => {
  const file = fileOfBefore();
  const { payments, settled, close } = createSqliteStores(openLedgerDatabase(file));
  for (const state of STATES) {
    const signature = state === 'settling' || state === 'unknown' ? Buffer.alloc(65, 1) : null;
    expect(await payments.get(state)).toMatchObject({ state, amount: 1000n, signature, channel: null, calldata: null });
  }
  expect((await settled.settledBetween(0, 10))[0]).toMatchObject({ count: 1, amount: 1000n });
  const end = { charged: 1000n, signature: null, reason: null, endedAt: 6, block: 3 };
  expect(await payments.move('unknown', ['unknown'], 'settled', end)).toBe(true);
  expect(await payments.get('unknown')).toMatchObject({ state: 'settled', charged: 1000n, channel: null });
  expect(await payments.move('settling', ['settling'], 'failed', { reason: 'x', signature: null })).toBe(true);
  expect(await payments.release('reserved', ['reserved'])).toBe(true);
  expect(await payments.reserve(reservation('next', 'next'), 0, null)).toBe(true);
  await close();
});

test('a ledger from before channels sells from channels once it is migrated', async () => {
  const { channels, close } = createSqliteStores(openLedgerDatabase(fileOfBefore()));
  expect(await channels.totals('eip155:5042')).toEqual({ charged: 0n, claimed: 0n, writtenOff: 0n });
  await channels.note(channelTerms('a'), channelState(), SEEN_AT);
  expect(await channels.charge(voucherSale('s', 'a', 100n), Buffer.from('reply'), SEEN_AT)).not.toBeNull();
  await close();
});

test('a ledger from before channels is reported as it is, and not migrated', async () => {
  const reports = openLedgerReports(fileOfBefore());
  expect((await reports.status()).sums.find(({ state }) => state === 'settled')).toMatchObject({ amount: 1000n });
  expect(await gathered(reports.income(0, 10))).toMatchObject([{ id: 'settled', amount: 1000n }]);
  await reports.close();
});

test.each([
  ['usdc_payments', 'a channel of another length', "channel_id = x'00'"],
  ['usdc_payments', 'a voucher over nothing', 'voucher_max = 0'],
  ['channels', 'more claimed and written off than charged', 'total_claimed = 60, written_off = 41'],
  ['channels', 'charges that wait for no claim', 'unclaimed_since = NULL'],
  ['channels', 'a wait without a charge', 'total_claimed = 100'],
  ['channels', 'a negative balance', 'balance = -1'],
  ['channel_operations', 'an open operation without its call', 'calldata = NULL'],
  ['channel_operations', 'an ended operation with its call', "state = 'done'"],
  ['channel_operations', 'a claim of one channel', 'channel_id = zeroblob(32)'],
])('no row of %s holds %s', async (table, _, change) => {
  const db = openLedgerDatabase(join(folder, 'ledger.db'));
  const { channels, close } = createSqliteStores(db);
  await channels.note(channelTerms('a'), channelState(), SEEN_AT);
  await channels.charge(voucherSale('s', 'a', 100n), Buffer.from('reply'), SEEN_AT);
  const call = { calldata: Buffer.from('x'), channelId: null, amount: 1n, createdAt: 1 };
  await channels.begin({ id: '1', network: 'eip155:5042', kind: 'claim', ...call });
  expect(() => db.exec(`UPDATE ${table} SET ${change}`)).toThrow(/CHECK/);
  await close();
});
