import { expect, test } from 'vitest';
import type { ProviderNote } from '../../src/store/ports/stores.ts';
import { describePorts, ofNow, useLedger } from '../support/ledger/ledger-adapters.ts';

const HOUR_MS = 3_600_000;
const AT = 1_795_262_400_000;

const noteOn = (host: string, more: Partial<ProviderNote> = {}): ProviderNote => ({
  host,
  kind: 'apart',
  question: 'receipt of 0x01',
  said: 'mined in block 7',
  others: 'not mined',
  sinceMs: AT,
  untilMs: AT + HOUR_MS,
  ...more,
});

describePorts('the notes on RPC providers', (adapter) => {
  const ledger = useLedger(adapter);
  const stores = ofNow(() => ledger.stores);
  const list = (nowMs = AT) => stores.providers.list(nowMs);
  const hosts = async (nowMs?: number) => (await list(nowMs)).map(({ host }) => host);

  test('are listed whole, the oldest first, until they expire', async () => {
    const [first, second] = [noteOn('b.example'), noteOn('a.example', { sinceMs: AT + 1, untilMs: AT + 2 * HOUR_MS })];
    await stores.providers.put(second);
    await stores.providers.put(first);
    expect(await list()).toEqual([first, second]);
    expect(await list(AT + HOUR_MS - 1)).toEqual([first, second]);
    expect(await list(AT + HOUR_MS)).toEqual([second]);
  });

  test('are one for each host, kind and question: a later one renews the texts and the end, and keeps the older beginning', async () => {
    await stores.providers.put(noteOn('a.example'));
    const later = noteOn('a.example', { said: 'no', others: 'yes', sinceMs: AT + 5, untilMs: AT + 2 * HOUR_MS });
    await stores.providers.put(later);
    expect(await list()).toEqual([{ ...later, sinceMs: AT }]);
    await stores.providers.put(noteOn('a.example', { kind: 'disputed' }));
    await stores.providers.put(noteOn('a.example', { question: 'receipt of 0x02' }));
    await stores.providers.put(noteOn('b.example'));
    expect(await list()).toHaveLength(4);
  });

  test('are deleted by the next note once they have expired, and begin anew then', async () => {
    await stores.providers.put(noteOn('a.example'));
    await stores.providers.put(noteOn('b.example', { sinceMs: AT + HOUR_MS, untilMs: AT + 2 * HOUR_MS }));
    expect(await ledger.sql('SELECT host FROM provider_notes')).toEqual([{ host: 'b.example' }]);
    const again = noteOn('a.example', { sinceMs: AT + HOUR_MS + 1, untilMs: AT + 2 * HOUR_MS });
    await stores.providers.put(again);
    expect((await list(AT + HOUR_MS))[1]).toEqual(again);
  });

  test('of a dispute end when its question is agreed on; what is set apart stays', async () => {
    await stores.providers.put(noteOn('a.example', { kind: 'disputed' }));
    await stores.providers.put(noteOn('b.example', { kind: 'disputed' }));
    await stores.providers.put(noteOn('b.example', { kind: 'disputed', question: 'receipt of 0x02' }));
    await stores.providers.put(noteOn('c.example'));
    await stores.providers.agree('receipt of 0x01');
    expect((await list()).map(({ host, question }) => [host, question])).toEqual([
      ['b.example', 'receipt of 0x02'],
      ['c.example', 'receipt of 0x01'],
    ]);
  });

  test('of a host end together when it is trusted again, and are counted', async () => {
    await stores.providers.put(noteOn('a.example'));
    await stores.providers.put(noteOn('a.example', { kind: 'disputed' }));
    await stores.providers.put(noteOn('b.example'));
    expect([await stores.providers.trust('a.example'), await hosts()]).toEqual([2, ['b.example']]);
    expect([await stores.providers.trust('a.example'), await hosts()]).toEqual([0, ['b.example']]);
  });

  test('are seen by another instance, and after a restart', async () => {
    const other = await ledger.another();
    await stores.providers.put(noteOn('a.example'));
    expect(await other.providers.list(AT)).toEqual([noteOn('a.example')]);
    await other.providers.put(noteOn('a.example', { sinceMs: AT - 1 }));
    expect(await (await ledger.reopen()).providers.list(AT)).toEqual([noteOn('a.example', { sinceMs: AT - 1 })]);
  });
});
