import { expect, test } from 'vitest';
import { transferIdBytes } from '../../../../../src/payment/settler.ts';
import { createGatewayBatches, type GatewayTransfer } from '../../../../../src/payment/usdc/gateway-client.ts';
import type { DueTransfer, TransferNote } from '../../../../../src/store/ports/stores.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { quiet } from '../../../../support/quiet.ts';

const NOW = 1_800_000_000_000;
const ID = '01234567-89ab-4cde-8f01-23456789abcd';
const HASH = `0x${'ab'.repeat(32)}`;

/** Looks once at one transfer that was looked at so often before; the Gateway answers so. */
async function look(reported: Partial<GatewayTransfer> | Error, checks = 0) {
  const notes: [string, TransferNote][] = [];
  const errors: string[] = [];
  const warned: object[] = [];
  const due = { paymentId: 'a', transferId: transferIdBytes(ID), checks } as DueTransfer;
  const { round } = createGatewayBatches(
    {
      clock: createManualClock(NOW),
      log: { ...quiet, warn: (detail) => void warned.push(detail), error: (_, message) => void errors.push(message) },
    },
    {
      transfer: async () => {
        if (reported instanceof Error) throw reported;
        return { id: ID, ...reported } as GatewayTransfer;
      },
    },
    { due: async () => [due], note: async (id, note) => void notes.push([id, note]) },
  );
  await Promise.all([round(), round()]);
  expect(notes).toHaveLength(1);
  return { note: notes[0]?.[1], errors, warned };
}
const LEARNED = Buffer.from('ab'.repeat(32), 'hex');

test('the transaction of a batch is stored once it is on the chain, and not looked for again', async () => {
  for (const status of ['confirmed', 'completed'] as const)
    expect((await look({ status, txHash: HASH })).note).toEqual({ status, transaction: LEARNED, nextCheckAt: null });
});

test.each(['received', 'batched'] as const)(
  'a transaction of a transfer that is %s may be replaced: it is looked at again',
  async (status) => {
    expect((await look({ status, txHash: HASH })).note).toEqual({
      status,
      transaction: LEARNED,
      nextCheckAt: NOW + 5000,
    });
  },
);

test.each([undefined, 'soon', `${HASH}00`])('a transfer whose transaction is %s is looked at again', async (txHash) => {
  const { note } = await look({ status: 'completed', ...(txHash !== undefined && { txHash }) });
  expect(note).toEqual({ status: 'completed', transaction: null, nextCheckAt: NOW + 5000 });
});

test('a transfer that the Gateway gives up after it had accepted it is logged as an error, and not looked at again', async () => {
  const { note, errors } = await look({ status: 'failed' });
  expect(note).toEqual({ status: 'failed', transaction: null, nextCheckAt: null });
  expect(errors).toHaveLength(1);
  expect((await look({ status: 'received' })).errors).toEqual([]);
});

test.each<[string, Partial<GatewayTransfer> | Error]>([
  ['the Gateway does not show', new Error('away')],
  ['the Gateway confuses with another', { id: ID.replace('0', '9'), status: 'completed', txHash: HASH }],
])('nothing is stored for a transfer that %s', async (_, reported) => {
  expect((await look(reported)).note).toEqual({ status: null, transaction: null, nextCheckAt: NOW + 5000 });
});

test('a transfer that could not be looked up is logged with the payment that it belongs to', async () => {
  const err = new Error('away');
  expect((await look(err)).warned).toEqual([{ err, payment: 'a' }]);
  expect((await look({ status: 'received' })).warned).toEqual([]);
});

test('lookups of a batch are further apart each time, at most an hour, and end after about a month', async () => {
  const next = async (checks: number) => (await look({ status: 'received' }, checks)).note?.nextCheckAt;
  expect([await next(1), await next(3)]).toEqual([NOW + 10_000, NOW + 40_000]);
  expect([await next(20), await next(749), await next(750)]).toEqual([NOW + 3_600_000, NOW + 3_600_000, null]);
});
