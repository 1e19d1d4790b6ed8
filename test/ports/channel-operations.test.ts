import { expect, test } from 'vitest';
import { operation, refundOf, SEEN_AT } from '../support/ledger/channel-rows.ts';
import { describePorts } from '../support/ledger/ledger-adapters.ts';
import { hash32 } from '../support/ledger/ledger-rows.ts';
import { ID, useChannels } from '../support/ledger/use-channels.ts';

const ids = (of: readonly { id: string }[]): string[] => of.map(({ id }) => id);

describePorts('an operation on a channel', (adapter) => {
  const { payments, channels, seen, pay, deposit, refuses } = useChannels(adapter);

  test('is read as it was begun', async () => {
    await seen();
    const claim = operation('1', { amount: 2n ** 62n + 1n });
    const refund = refundOf('2', 'a');
    expect([await channels.begin(claim), await channels.begin(refund, { charged: 0n })]).toEqual([true, true]);
    const open = { state: 'open', transaction: null, reason: null, endedAt: null };
    expect(await channels.operation('1')).toEqual({ ...claim, ...open });
    expect(await channels.operation('2')).toEqual({ ...refund, ...open });
    expect(await channels.operation('3')).toBeNull();
  });

  test('that is a refund begins only when its channel has no open deposit, no open refund and the given charges', async () => {
    await refuses(() => channels.begin(refundOf('r', 'a'), { charged: 0n }));
    await seen();
    await pay('s1', 100n);
    for (const wrong of [{ charged: 0n }, { charged: 99n }, { charged: 101n }, undefined])
      await refuses(() => channels.begin(refundOf('r', 'a'), wrong));
    await deposit('d', 200n);
    await refuses(() => channels.begin(refundOf('r', 'a'), { charged: 100n }));
    await payments.release('d', ['reserved']);
    const both = [
      channels.begin(refundOf('r', 'a'), { charged: 100n }),
      channels.begin(refundOf('r2', 'a'), { charged: 100n }),
    ];
    expect(await Promise.all(both)).toEqual([true, false]);
    await refuses(() => channels.begin(refundOf('r3', 'a'), { charged: 100n }));
    await channels.end('r', { state: 'failed', reason: 'reverted', endedAt: 1 });
    expect(await channels.begin(refundOf('r3', 'a'), { charged: 100n })).toBe(true);
  });

  test('that is a refund does not begin after another one of its channel that was done since the given time', async () => {
    await seen();
    await channels.begin(refundOf('r', 'a'), { charged: 0n });
    await channels.end('r', { state: 'done', amount: 1n, transaction: hash32('t'), endedAt: 1000 });
    await refuses(() => channels.begin(refundOf('r2', 'a'), { charged: 0n, pausedSince: 999 }));
    expect(await channels.begin(refundOf('r2', 'a'), { charged: 0n, pausedSince: 1000 })).toBe(true);
    // One that moved nothing is no reason to wait.
    await channels.end('r2', { state: 'failed', reason: 'reverted', endedAt: 2000 });
    expect(await channels.begin(refundOf('r3', 'a'), { charged: 0n, pausedSince: 1000 })).toBe(true);
  });

  test('ends once: as done with the amount and the transaction of the evidence, and without its calldata', async () => {
    await channels.begin(operation('1'));
    const done = { state: 'done', amount: 650n, transaction: hash32('t'), endedAt: SEEN_AT + 4 } as const;
    expect(await channels.end('1', done)).toBe(true);
    await refuses(() => channels.end('1', { state: 'failed', reason: 'late', endedAt: 9 }));
    await refuses(() => channels.end('unknown', done));
    expect(await channels.operation('1')).toMatchObject({ ...done, calldata: null, reason: null });
  });

  test('that failed keeps its amount and its noted transaction, and says why', async () => {
    await channels.begin(operation('1'));
    await channels.noteBroadcast([{ id: '1', transaction: hash32('t') }]);
    await channels.end('1', { state: 'failed', reason: 'reverted', endedAt: 5 });
    const kept = { amount: 700n, transaction: Buffer.from(hash32('t')), calldata: null };
    expect(await channels.operation('1')).toMatchObject({ ...kept, state: 'failed', reason: 'reverted', endedAt: 5 });
  });

  test('is listed while it is open, oldest first, as many as asked for', async () => {
    for (const [id, createdAt] of [
      ['c', 1],
      ['a', 3],
      ['b', 2],
      ['d', 2],
    ] as const)
      await channels.begin(operation(id, { createdAt }));
    await channels.end('c', { state: 'failed', reason: 'x', endedAt: 5 });
    expect(ids(await channels.openOperations(10))).toEqual(['b', 'd', 'a']);
    expect(ids(await channels.openOperations(2))).toEqual(['b', 'd']);
  });

  test('has its transaction noted while it is open, and only the open ones are returned', async () => {
    for (const id of ['a', 'b', 'c']) await channels.begin(operation(id));
    await channels.end('b', { state: 'failed', reason: 'x', endedAt: 5 });
    const entries = ['a', 'b', 'c', 'unknown'].map((id) => ({ id, transaction: hash32(`sent ${id}`) }));
    expect(await channels.noteBroadcast(entries)).toEqual(new Set(['a', 'c']));
    const hashes = await Promise.all(['a', 'b', 'c'].map(async (id) => (await channels.operation(id))?.transaction));
    expect(hashes).toEqual([Buffer.from(hash32('sent a')), null, Buffer.from(hash32('sent c'))]);
    expect(await channels.noteBroadcast([])).toEqual(new Set());
  });

  test('is noted under a fencing token that no instance holds on SQLite only, where one process holds the ledger', async () => {
    await channels.begin(operation('a'));
    const noted = await channels.noteBroadcast([{ id: 'a', transaction: hash32('t') }], 1);
    expect(noted).toEqual(new Set(adapter.name === 'sqlite' ? ['a'] : []));
    expect((await channels.operation('a'))?.transaction).toEqual(
      adapter.name === 'sqlite' ? Buffer.from(hash32('t')) : null,
    );
  });

  test('that was the last done refund of a channel is found, whatever began or failed later', async () => {
    await seen();
    await seen('b');
    expect(await channels.lastRefund(ID)).toBeNull();
    const done = (endedAt: number) => ({ state: 'done', amount: 1n, transaction: hash32('t'), endedAt }) as const;
    for (const [id, endedAt] of [
      ['r2', 10],
      ['r1', 20],
    ] as const) {
      await channels.begin(refundOf(id, 'a'), { charged: 0n });
      await channels.end(id, done(endedAt));
    }
    await channels.begin(refundOf('other', 'b'), { charged: 0n });
    await channels.end('other', done(30));
    await channels.begin(refundOf('failed', 'a'), { charged: 0n });
    await channels.end('failed', { state: 'failed', reason: 'x', endedAt: 40 });
    await channels.begin(refundOf('open', 'a'), { charged: 0n });
    expect((await channels.lastRefund(ID))?.id).toBe('r1');
  });

  test('that is a refund adds to what was given back, once it is done', async () => {
    await seen();
    for (const [id, amount] of [
      ['1', 5n],
      ['2', 40n],
      ['3', 300n],
    ] as const) {
      await channels.begin(refundOf(id, 'a'), { charged: 0n });
      const done = { state: 'done', amount, transaction: hash32(id), endedAt: SEEN_AT } as const;
      await channels.end(id, id === '3' ? { state: 'failed', reason: 'reverted', endedAt: SEEN_AT } : done);
    }
    await channels.begin(refundOf('4', 'a'), { charged: 0n });
    expect([await channels.getRefunded(ID), await channels.getRefunded(hash32('other'))]).toEqual([45n, 0n]);
  });

  test('is found by the transaction with which it was done', async () => {
    for (const id of ['1', '2', '3']) await channels.begin(operation(id));
    const transaction = hash32('t');
    await channels.noteBroadcast([{ id: '1', transaction }]);
    expect(await channels.findDone(transaction)).toBeNull();
    await channels.end('1', { state: 'failed', reason: 'reverted', endedAt: 5 });
    await channels.end('2', { state: 'done', amount: 1n, transaction, endedAt: 6 });
    expect(await channels.findDone(transaction)).toMatchObject({ id: '2' });
  });
});
