import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type BooksOptions,
  type CountedSurplus,
  createBookMetrics,
  createBooks,
  createMismatchWatch,
} from '../../../src/payment/books.ts';
import type { BookVerdict } from '../../../src/payment/settler.ts';
import { createSqliteStores } from '../../../src/store/open.ts';
import type { BookEntry, BookStore } from '../../../src/store/ports/books.ts';
import type { LedgerStores } from '../../../src/store/ports/stores.ts';
import { openMemoryLedger } from '../../support/ledger/fresh-ledger.ts';
import { hash32, reservation } from '../../support/ledger/ledger-rows.ts';
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts';

const NETWORK = 'eip155:5042';
const START = 1_800_000_000_000;
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
const CONTRACT = Buffer.alloc(20, 0x36);
const SHOWN: BookVerdict = { kind: 'shown' };
const missing = (amount = 500n): BookVerdict => ({ kind: 'missing', amount, detail: 'it has not paid' });
const unread: BookVerdict = { kind: 'unread', detail: 'its receipt cannot be read' };

let stores: LedgerStores;
let clock: ManualClock;
/** What the chain shows of a row or of something beside the rows; shown by default. */
let verdicts: Map<string, BookVerdict>;
let compared: string[][];
let rest: { again: string[]; from: number; to: number }[];
let surpluses: CountedSurplus[];
/** What was written. */
let records: Parameters<BookStore['record']>[1][];
/** Called when rows are compared. */
let onCompare: () => void;
let logged: { level: string; detail: Record<string, unknown>; message: string }[];
let head: () => Promise<number>;
let countSurplus: BooksOptions['countSurplus'];
beforeEach(() => {
  stores = createSqliteStores(openMemoryLedger());
  clock = createManualClock(START);
  [verdicts, compared, rest, surpluses, logged, records] = [new Map(), [], [], [], [], []];
  onCompare = () => {};
  head = async () => 2000;
  countSurplus = async (_after, reached) => ({ block: reached, transfers: 0, amount: 0n, transactions: [] });
});
afterEach(() => stores.close());

const log = (level: string) => (detail: object, message: string) =>
  void logged.push({ level, detail: detail as Record<string, unknown>, message });

function open() {
  const store: BookStore = {
    ...stores.books,
    record: (network, change) => {
      records.push(change);
      return stores.books.record(network, change);
    },
  };
  return createBooks({
    store,
    ledger: stores.payments,
    network: NETWORK,
    clock,
    rails: [
      {
        name: 'usdc-exact',
        contract: CONTRACT,
        books: {
          compare: async (rows) => {
            compared.push(rows.map(({ id }) => id));
            onCompare();
            return rows.map(({ id }) => verdicts.get(id) ?? SHOWN);
          },
          compareRest: async ({ from, to }, again) => {
            rest.push({ again: [...again], from, to });
            return new Map([...verdicts].filter(([name]) => name.includes(':')));
          },
        },
      },
      // A rail of which the chain shows nothing.
      { name: 'toy', contract: Buffer.alloc(20, 1) },
    ],
    reachedBlock: () => head(),
    countSurplus: (after, reached) => countSurplus(after, reached),
    onSurplus: (surplus) => void surpluses.push(surplus),
    log: { info: log('info'), warn: log('warn'), error: log('error') },
  });
}

async function settle(id: string, endedAt: number, contract = CONTRACT): Promise<void> {
  const { payments } = stores;
  await payments.reserve(reservation(id, id, { contract }), 0, null);
  await payments.move(id, ['reserved'], 'settling', {});
  await payments.move(id, ['settling'], 'settled', { endedAt, transaction: hash32(id), block: 7, charged: 500n });
}
const entries = async (kind: BookEntry['kind']) =>
  (await stores.books.entries(NETWORK, kind, 100)).map(({ item, amount }) => [item, amount]);
/** An entry of an earlier round. */
const found = (rail: string, item: string, amount: bigint) => ({
  ...({ rail, kind: 'missing', item, amount, detail: '', notedMs: START } as const),
});
const alerts = () => logged.filter(({ level }) => level === 'error').map(({ detail }) => detail.payment);

describe('the rounds', () => {
  test('go back a day at first, then to the last, an hour apart; rows of other rails are left out', async () => {
    await settle('old', START - DAY - 1);
    await settle('early', START - DAY);
    await settle('noon', START - DAY / 2);
    await settle('late', START - 1);
    await settle('other', START - 1, Buffer.alloc(20, 1));
    const books = open();
    await books.due();
    expect(compared).toEqual([['early', 'noon', 'late']]);
    await clock.advance(HOUR - 1);
    await books.due();
    expect(compared).toHaveLength(1);
    await settle('next', START + MINUTE);
    await clock.advance(1);
    await books.due();
    // The last minutes are compared once more: clocks differ, and a row is written a moment after its time.
    expect(compared.at(-1)).toEqual(['late', 'next']);
    expect(await stores.books.checked(NETWORK)).toEqual({ endedMs: START + HOUR, block: 2000 });
  });

  test('of another process begin where the last ended, if that is longer than a day ago', async () => {
    await stores.books.record(NETWORK, { found: [], ended: [], checked: { endedMs: START - 3 * DAY, block: 1 } });
    for (const [id, at] of Object.entries({ old: START - 4 * DAY, since: START - 2 * DAY })) await settle(id, at);
    await open().due();
    expect(compared).toEqual([['since']]);
  });

  test('of a new process go back a day, however late another has ended its last', async () => {
    await stores.books.record(NETWORK, { found: [], ended: [], checked: { endedMs: START - MINUTE, block: 1 } });
    for (const [id, at] of Object.entries({ old: START - DAY - 1, day: START - DAY, hour: START - HOUR }))
      await settle(id, at);
    await open().due();
    expect(compared).toEqual([['day', 'hour']]);
  });

  test('ask a rail about no rows of others, and write nothing but their end where all is shown', async () => {
    await settle('other', START - 1, Buffer.alloc(20, 1));
    const books = open();
    await books.due();
    expect(compared).toEqual([]);
    await settle('row', START);
    await clock.advance(HOUR);
    await books.due();
    expect(compared).toEqual([['row']]);
    expect(records).toEqual([
      { found: [], ended: [], checked: { endedMs: START, block: 2000 } },
      { found: [], ended: [], checked: { endedMs: START + HOUR, block: 2000 } },
    ]);
  });

  test('that fail keep nothing, and are tried again after a minute', async () => {
    await settle('row', START - 1);
    let asked = 0;
    head = () => {
      asked += 1;
      return Promise.reject(new Error('no provider'));
    };
    const books = open();
    await books.due();
    await clock.advance(MINUTE - 1);
    await books.due();
    expect([asked, compared, await stores.books.checked(NETWORK)]).toEqual([1, [], null]);
    head = async () => 2000;
    await clock.advance(1);
    await books.due();
    expect(compared).toEqual([['row']]);
  });

  test('compare many rows page by page, each once', async () => {
    for (let at = 0; at < 230; at++) await settle(`row ${at}`, START - 1 - (at % 3));
    await open().due();
    expect(compared.map(({ length }) => length)).toEqual([100, 100, 30]);
    expect(new Set(compared.flat()).size).toBe(230);
  });

  test('that are stopped end with the page that is compared, and count as not made', async () => {
    for (let at = 0; at < 150; at++) await settle(`row ${at}`, START - 1);
    const books = open();
    onCompare = () => void books.stop();
    await books.due();
    expect(compared.map(({ length }) => length)).toEqual([100]);
    expect([records, await stores.books.checked(NETWORK)]).toEqual([[], null]);
  });

  test('do not begin once they were stopped', async () => {
    await settle('row', START - 1);
    const books = open();
    await books.stop();
    await books.due();
    expect(compared).toEqual([]);
  });
});

describe('a row', () => {
  test('that the chain lacks is an alert once, with its id, and is looked at again until it is shown', async () => {
    await settle('row', START - HOUR);
    verdicts.set('row', missing());
    const books = open();
    for (let round = 0; round < 3; round++) {
      await books.due();
      await clock.advance(HOUR);
    }
    expect([await entries('missing'), alerts()]).toEqual([[['row', 500n]], ['row']]);
    const [entry] = await stores.books.entries(NETWORK, 'missing', 1);
    expect(entry).toMatchObject({ detail: 'it has not paid', notedMs: START });
    expect(logged.find(({ level }) => level === 'error')).toMatchObject({
      message: 'ALERT: the ledger has money that the chain lacks',
      detail: { rail: 'usdc-exact', payment: 'row', usdc: '0.0005', reason: 'it has not paid' },
    });
    verdicts.set('row', missing(700n));
    await books.due();
    expect([await entries('missing'), alerts()]).toEqual([[['row', 700n]], ['row', 'row']]);
    verdicts.delete('row');
    await clock.advance(HOUR);
    await books.due();
    expect(await entries('missing')).toEqual([]);
  });

  test('that cannot be read is no difference, and is looked at again long after its span', async () => {
    await settle('row', START - HOUR);
    verdicts.set('row', unread);
    const books = open();
    await books.due();
    expect([await entries('unread'), await entries('missing'), alerts()]).toEqual([[['row', 0n]], [], []]);
    expect(records[0]).toEqual({
      found: [{ rail: 'usdc-exact', item: 'row', kind: 'unread', amount: 0n, detail: unread.detail, notedMs: START }],
      ended: [],
    });
    await clock.advance(5 * HOUR);
    verdicts.set('row', missing());
    await books.due();
    expect([await entries('unread'), await entries('missing')]).toEqual([[], [['row', 500n]]]);
    // A difference stays one while it cannot be read again.
    verdicts.set('row', unread);
    await clock.advance(HOUR);
    await books.due();
    expect([await entries('unread'), await entries('missing')]).toEqual([[], [['row', 500n]]]);
  });

  test('that is gone from the ledger lacks nothing, beside those that are looked at again', async () => {
    const items = ['early', 'gone', 'late'];
    for (const item of ['early', 'late']) {
      await settle(item, START - 5 * DAY);
      verdicts.set(item, missing(1n));
    }
    await stores.books.record(NETWORK, { found: items.map((item) => found('usdc-exact', item, 1n)), ended: [] });
    await open().due();
    expect([(await entries('missing')).sort(), compared]).toEqual([
      [
        ['early', 1n],
        ['late', 1n],
      ],
      [['early', 'late']],
    ]);
    // What is known already is no new alert.
    expect(alerts()).toEqual([]);
    expect(await stores.books.checked(NETWORK)).toEqual({ endedMs: START, block: 2000 });
  });

  test('is an alert by its own amount, not by that of another one', async () => {
    await settle('dear', START - HOUR);
    verdicts.set('dear', missing());
    const books = open();
    await books.due();
    await settle('cheap', START);
    verdicts.set('cheap', missing(300n));
    await clock.advance(HOUR);
    await books.due();
    expect(alerts()).toEqual(['dear', 'cheap']);
  });

  test('of many that are open is looked at once in a round, a hundred at a time', async () => {
    const items = Array.from({ length: 150 }, (_, at) => `row ${at}`);
    for (const item of items) await settle(item, START - 5 * DAY);
    await stores.books.record(NETWORK, { found: items.map((item) => found('usdc-exact', item, 1n)), ended: [] });
    await open().due();
    expect(compared.map(({ length }) => length)).toEqual([100, 50]);
    expect(new Set(compared.flat())).toEqual(new Set(items));
    expect(await entries('missing')).toEqual([]);
  });
});

test('what a rail keeps beside its rows is compared over the span of the rows, with what is open of it', async () => {
  verdicts.set('channel:0x01', missing(3n));
  const books = open();
  await books.due();
  expect(rest).toEqual([{ again: [], from: START - DAY, to: START }]);
  expect(await entries('missing')).toEqual([['channel:0x01', 3n]]);
  verdicts.set('channel:0x01', { kind: 'surplus', amount: 2n, detail: 'more' });
  // What is open of other rails, and of rows, is not this rail's to look at again.
  await settle('row', START - 5 * DAY);
  verdicts.set('row', missing());
  const others = [found('toy', 'channel:0x02', 1n), found('usdc-exact', 'row', 500n)];
  await stores.books.record(NETWORK, { found: others, ended: [] });
  await clock.advance(HOUR);
  await books.due();
  expect(rest.at(-1)?.again).toEqual(['channel:0x01']);
  expect((await entries('missing')).map(([item]) => item).sort()).toEqual(['channel:0x02', 'row']);
  expect(surpluses).toEqual([{ transfers: 1, amount: 2n, transactions: ['channel:0x01'] }]);
});

test('what came in beyond the ledger is counted from the second round on, and stops no round', async () => {
  const asked: [number, number][] = [];
  countSurplus = async (after, reached) => {
    asked.push([after, reached]);
    if (asked.length === 2) throw new Error('no logs');
    return { block: 1500, transfers: 1, amount: 7n, transactions: ['0xab'] };
  };
  const books = open();
  for (let round = 0; round < 4; round++) {
    await books.due();
    await clock.advance(HOUR);
  }
  expect(asked).toEqual([
    [2000, 2000],
    [1500, 2000],
    [1500, 2000],
  ]);
  expect(surpluses).toHaveLength(2);
  expect(logged.map(({ level }) => level)).toEqual(['warn']);
  expect(await stores.books.checked(NETWORK)).toEqual({ endedMs: START + 3 * HOUR, block: 1500 });
});

describe('a rail', () => {
  const watch = () =>
    createMismatchWatch({ info: log('info'), error: log('error') }, stores.books, NETWORK, 1_000_000n);

  test('stops beyond the limit, not at it, and no other rail with it', async () => {
    const mismatch = watch();
    await mismatch.refresh();
    expect(mismatch.why('usdc-exact')).toBeNull();
    const all = [found('usdc-exact', 'a', 400_000n), found('usdc-exact', 'b', 600_000n), found('toy', 'c', 1n)];
    await stores.books.record(NETWORK, { found: all, ended: [] });
    await mismatch.refresh();
    expect(mismatch.why('usdc-exact')).toBeNull();
    await stores.books.record(NETWORK, { found: [found('usdc-exact', 'd', 1n)], ended: [] });
    await mismatch.refresh();
    const why = 'the chain lacks 1.000001 USDC of what the ledger has on this rail (entries: 3)';
    expect([mismatch.why('usdc-exact'), mismatch.why('toy')]).toEqual([why, null]);
    expect(logged).toMatchObject([{ level: 'error', detail: { rail: 'usdc-exact', reason: why } }]);
    await mismatch.refresh();
    expect(logged).toHaveLength(1);
  });

  test('sells again once the difference is accepted or gone, and stops again for what grows after that', async () => {
    const mismatch = watch();
    await stores.books.record(NETWORK, { found: [found('usdc-exact', 'a', 2_000_000n)], ended: [] });
    await mismatch.refresh();
    expect(mismatch.why('usdc-exact')).not.toBeNull();
    await stores.books.accept(START);
    await mismatch.refresh();
    expect(mismatch.why('usdc-exact')).toBeNull();
    expect(logged.at(-1)).toMatchObject({ level: 'info', detail: { rail: 'usdc-exact' } });
    await stores.books.record(NETWORK, { found: [found('usdc-exact', 'a', 2_000_001n)], ended: [] });
    await mismatch.refresh();
    expect(mismatch.why('usdc-exact')).not.toBeNull();
    await stores.books.record(NETWORK, { found: [], ended: [found('usdc-exact', 'a', 0n)] });
    await mismatch.refresh();
    expect(mismatch.why('usdc-exact')).toBeNull();
  });

  test('stays as it is while the ledger cannot be read', async () => {
    const mismatch = watch();
    await stores.books.record(NETWORK, { found: [found('usdc-exact', 'a', 2_000_000n)], ended: [] });
    await mismatch.refresh();
    await stores.close();
    await expect(mismatch.refresh()).rejects.toThrow();
    expect(mismatch.why('usdc-exact')).not.toBeNull();
    stores = createSqliteStores(openMemoryLedger());
  });
});

test('the figures are those of the ledger at each scrape, and none where it cannot be read', async () => {
  const registry = new Registry();
  const { onSurplus } = createBookMetrics(registry, stores.books, NETWORK, ['usdc-exact', 'toy']);
  const scraped = async () => {
    const samples = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return Object.fromEntries(
      samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').pop())]),
    );
  };
  const both = [found('usdc-exact', 'a', 400_000n), found('usdc-exact', 'b', 100_000n)];
  await stores.books.record(NETWORK, { found: [...both, { ...found('toy', 'c', 0n), kind: 'unread' }], ended: [] });
  onSurplus({ transfers: 2, amount: 250_000n, transactions: [] });
  onSurplus({ transfers: 1, amount: 250_000n, transactions: [] });
  const counted = { ledger_surplus_total: 3, ledger_surplus_usdc_total: 0.5 };
  expect(await scraped()).toEqual({
    ...counted,
    'ledger_mismatch_usdc{rail="usdc-exact"}': 0.5,
    'ledger_mismatch_usdc{rail="toy"}': 0,
    ledger_unread_rows: 1,
  });
  await stores.close();
  expect(await scraped()).toEqual(counted);
  stores = createSqliteStores(openMemoryLedger());
});
