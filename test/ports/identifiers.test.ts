import { expect, test } from 'vitest';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';

const identifierHash = hash32('identifier');
const named = (id: string, nonce: string) => reservation(id, nonce, { identifierHash });

describePorts('a payment identifier', (adapter) => {
  const ledger = useLedger(adapter);
  const store = ofNow(() => ledger.stores.payments);

  const end = async (id: string, to: 'settled' | 'failed', reason: string | null = null) => {
    await store.move(id, ['reserved'], 'settling', {}, { store: Buffer.from('reply') });
    await store.move(id, ['settling'], to, { reason, endedAt: 1 }, 'drop');
  };
  const holder = async () => (await store.findByIdentifier(identifierHash))?.id ?? null;

  test('that two authorizations present at once is given to one of them, over one instance or two', async () => {
    const both = [store, (await ledger.another()).payments];
    const tries = Array.from({ length: 64 }, (_, at) => both[at % 2]!.reserve(named(`p${at}`, `n${at}`), 0, null));
    const wins = await Promise.all(tries);
    expect(wins.filter(Boolean)).toHaveLength(1);
    expect(await holder()).toBe(`p${wins.indexOf(true)}`);
  });

  test('stays with its payment when that is settled', async () => {
    await store.reserve(named('a', 'a'), 0, null);
    await end('a', 'settled');
    expect(await store.reserve(named('b', 'b'), 0, null)).toBe(false);
    expect(await holder()).toBe('a');
  });

  test('never belongs to two payments, even for a writer that does not check', async () => {
    await store.reserve(named('a', 'a'), 0, null);
    await store.reserve(reservation('b', 'b'), 0, null);
    const take =
      "UPDATE usdc_payments SET identifier_hash = (SELECT identifier_hash FROM usdc_payments WHERE id = 'a')";
    await expect(ledger.sql(`${take} WHERE id = 'b'`)).rejects.toThrow(/unique/i);
    expect(await holder()).toBe('a');
  });

  test('is free again when its reservation is given back or its payment failed, and the failed row still knows its buyer', async () => {
    await store.reserve(named('a', 'a'), 0, null);
    await store.release('a', ['reserved']);
    expect(await holder()).toBeNull();
    expect(await store.reserve(named('b', 'b'), 0, null)).toBe(true);
    await end('b', 'failed', 'cancelled');
    expect(await holder()).toBeNull();
    expect(await store.reserve(named('c', 'c'), 0, null)).toBe(true);
    expect((await store.get('b'))?.identifierHash).toEqual(Buffer.from(identifierHash));
  });

  test('moves to the payment that reuses a reverted one, unless another payment holds it by then', async () => {
    for (const id of ['a', 'b']) {
      await store.reserve(named(id, id), 0, null);
      await end(id, 'failed', 'reverted');
    }
    expect(await store.reserve(named('a2', 'a'), 0, 'reverted')).toBe(true);
    expect(await store.reserve(named('b2', 'b'), 0, 'reverted')).toBe(false);
    expect(await holder()).toBe('a2');
    expect(await store.reserve(reservation('b3', 'b'), 0, 'reverted')).toBe(true);
    expect((await store.get('b3'))?.identifierHash).toBeNull();
  });
});
