import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Issuer } from '../../../../../src/payment/lightning/issuer.ts';
import { createNodeWatch } from '../../../../../src/payment/lightning/node-watch.ts';
import { TooMuchPower } from '../../../../../src/payment/lightning/nodes/receiver.ts';
import {
  ARTICLE_ORDER,
  type IssuerBench,
  openIssuerBench,
  refusal,
} from '../../../../support/lightning/issuer-bench.ts';
import { type NodeServer, nodeKeys } from '../../../../support/lightning/lightning-node-servers.ts';
import { createManualClock, type ManualClock } from '../../../../support/manual-clock.ts';
import type { Received, Recorded } from '../../../../support/upstream/replay.ts';

/** How what comes over the network is waited for; a machine that is busy with much else takes a second at times. */
const SOON = { interval: 2, timeout: 60_000 };
const signal = new AbortController().signal;
let bench: IssuerBench;
let node: NodeServer;
let clock: ManualClock;
let issuer: Issuer;

beforeEach(async () => {
  bench = await openIssuerBench();
  ({ node, clock } = bench);
  issuer = bench.issuer();
});
afterEach(() => bench.close());

const tooMuch = () => {
  throw new TooMuchPower('it may pay');
};
const issue = () => issuer.issue(ARTICLE_ORDER, signal);
/** The log lines about the node, oldest first. */
const logged = (level: string): Record<string, unknown>[] =>
  bench.logged.map((line) => JSON.parse(line)).filter((line) => line.level === level && 'receiver' in line);
/** Resolves when the issuer's own look at the node has ended. */
const settled = (ok: boolean) => vi.waitFor(() => expect(issuer.status().ok).toBe(ok), SOON);

describe('a node that is away', () => {
  test('does not stop the start, is looked for after 1, 2, 4 … 60 s, and sold through once it is there', async () => {
    await node.setFault('500');
    await issuer.start();
    expect(issuer.payTo()).toBeNull();
    expect(() => issuer.checkAvailable()).toThrow(expect.objectContaining({ status: 503, retryAfterSeconds: 1 }));
    const waits: number[] = [];
    for (let look = 0; look < 8; look++) {
      await vi.waitFor(() => expect(clock.pendingSleeps()).toHaveLength(1), SOON);
      const [wait = 0] = clock.pendingSleeps();
      waits.push(wait / 1000);
      await clock.advance(wait - 1);
      const asked = node.received.length;
      expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
      expect(node.received).toHaveLength(asked);
      if (look === 7) await node.setFault(null);
      await clock.advance(1);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    await settled(true);
    expect(issuer.payTo()).toBe(node.key);
    expect(await refusal(issue())).toBe('none');
  });

  test('makes the answer name a time to try again, and counts one outage once', async () => {
    await issuer.start();
    await node.setFault('reset');
    const at = await Promise.all([issue(), issue(), issue()].map(refusal));
    expect(at).toEqual(Array(3).fill('503 lightning_unavailable 1'));
    expect(clock.pendingSleeps()).toEqual([1000]);
    await clock.advance(1000);
    await vi.waitFor(() => expect(clock.pendingSleeps()).toEqual([2000]), SOON);
    expect(await refusal(issue())).toBe('503 lightning_unavailable 2');
  });

  test('does not include one that closes a kept connection as it is used again: it is asked once more, under another label', async () => {
    await issuer.start();
    const create = node.answers['POST /createinvoice'];
    let asked = 0;
    node.answers['POST /createinvoice'] = (request) => {
      asked += 1;
      if (asked === 1) throw new Error('closed, as a handler that throws does here');
      return (create as (request: Received) => Recorded)(request);
    };
    expect(await refusal(issue())).toBe('none');
    expect(issuer.status()).toEqual({ ok: true });
    const labels = node.received.flatMap(({ body }) => new URLSearchParams(body).get('externalId') ?? []);
    expect(new Set(labels).size).toBe(2);
  });

  test('includes one that loses the connection twice, and it is not asked a third time', async () => {
    await issuer.start();
    await node.setFault('reset');
    const before = node.received.length;
    expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
    expect(node.received).toHaveLength(before + 2);
  });

  test('that answers with an error is away at once, and is not asked twice for one invoice', async () => {
    await issuer.start();
    await node.setFault('500');
    const before = node.received.length;
    expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
    expect(node.received).toHaveLength(before + 1);
  });

  test('is logged once, and again when its reason changes', async () => {
    await issuer.start();
    await node.setFault('500');
    for (const wait of [0, 1000, 2000]) {
      await clock.advance(wait);
      await refusal(issue());
      await vi.waitFor(() => expect(clock.pendingSleeps()).toHaveLength(1), SOON);
    }
    const [first, ...more] = logged('warn');
    expect([first, more]).toEqual([expect.objectContaining({ receiver: 'phoenixd', waitMs: 1000 }), []]);
    expect(first?.reason).toContain('HTTP 500');
    await node.setFault('reset');
    await clock.advance(4000);
    await vi.waitFor(() => expect(clock.pendingSleeps()).toEqual([8000]), SOON);
    expect(logged('warn').slice(1)).toEqual([expect.objectContaining({ waitMs: 8000 })]);
    expect(logged('warn')[1]?.reason).toContain('the connection was lost');
  });

  test('counts as away also where the failure has no message', async () => {
    issuer = bench.issuer({ power: () => Promise.reject('a word') as never });
    await issuer.start();
    expect(issuer.status()).toEqual({ ok: false, detail: 'an unknown failure' });
  });

  test('again while the search for it ends is searched for anew, in whatever turn that is', async () => {
    for (let turns = 0; turns < 12; turns++) {
      const time = createManualClock(0);
      const answers = [null, node.key, node.key];
      const receiver = {
        ...({ kind: 'lnd', inspect: async () => [], close: async () => {} } as const),
        createInvoice: async () => '',
        isPaid: async () => false,
        nodeKey: async () => answers.shift() ?? Promise.reject(new Error('away')),
      };
      const info = async () => {
        for (let turn = 0; turn < turns; turn++) await null;
        if (answers.length === 1) watch.failed(new Error('away again'));
      };
      const log = { info: () => void info(), warn: () => {}, error: () => {} };
      const watch = createNodeWatch({ clock: time, log }, receiver, null, 1000);
      await watch.start();
      await time.advance(1000);
      await vi.waitFor(() => expect(watch.status().detail).toBe('away again'), SOON);
      await vi.waitFor(() => expect(time.pendingSleeps()).toEqual([2000]), SOON);
      await time.advance(2000);
      await vi.waitFor(() => expect(watch.status()).toEqual({ ok: true }), SOON);
      await watch.stop();
    }
  });

  test('is waited for from the start again after an invoice that was good, and not before', async () => {
    await issuer.start();
    const fails = async () => {
      node.twist = { amountMsat: 1n };
      await refusal(issue());
      node.twist = {};
      const [wait = 0] = clock.pendingSleeps();
      await clock.advance(wait);
      await settled(true);
      return wait;
    };
    expect([await fails(), await fails(), await fails()]).toEqual([1000, 2000, 4000]);
    await issue();
    expect(await fails()).toBe(1000);
    await clock.advance(60_000);
    expect(await fails()).toBe(1000);
  });

  test('includes one that does not answer in time', async () => {
    issuer = bench.issuer({ timeoutMs: 50 });
    await issuer.start();
    await node.setFault('time-out');
    expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
    expect(issuer.status()).toMatchObject({ ok: false, detail: expect.stringContaining('timed out') });
  });

  test('does not include one whose buyer left before the answer', async () => {
    await issuer.start();
    await node.setFault('time-out');
    const buyer = new AbortController();
    const asked = issuer.issue(ARTICLE_ORDER, buyer.signal);
    buyer.abort(new Error('gone'));
    expect(await refusal(asked)).toBe('499 client_gone undefined');
    expect(issuer.status()).toEqual({ ok: true });
  });

  test('does not include one that was asked wrongly: that is a bug of ours', async () => {
    await issuer.start();
    const asked = issuer.issue({ ...ARTICLE_ORDER, amountMsat: 1n }, signal);
    await expect(asked).rejects.toThrow(RangeError);
    expect(issuer.status()).toEqual({ ok: true });
  });
});

test('before the first look the status says that the node was not asked', () => {
  expect(issuer.status()).toEqual({ ok: false, detail: 'it was not asked yet' });
});

test('the log names the node that was found, and what its connection allows', async () => {
  issuer = bench.issuer({ power: () => ['it may read', 'it may list'] });
  await issuer.start();
  const line = { receiver: 'phoenixd' };
  expect(logged('warn')).toMatchObject([
    { ...line, warning: 'it may read' },
    { ...line, warning: 'it may list' },
  ]);
  expect(logged('info')).toMatchObject([{ ...line, payTo: node.key }]);
});

describe("a node's key", () => {
  test('that is not the expected one is never sold through, and the status says why', async () => {
    const expectedKey = nodeKeys('expected').key;
    issuer = bench.issuer({ expectedKey });
    await issuer.start();
    expect(issuer.status()).toMatchObject({ ok: false, detail: expect.stringContaining(expectedKey) });
    expect(logged('error')).toMatchObject([{ receiver: 'phoenixd', actual: node.key, expected: expectedKey }]);
    expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
    expect(node.invoices).toEqual([]);
    expect(await refusal(issuer.isPaid(Buffer.alloc(32), signal))).toMatch(/^503 lightning_unavailable/);
    node.key = expectedKey;
    await clock.advance(1000);
    await settled(true);
  });

  test('that is the expected one is sold through, and is known while the node is away', async () => {
    issuer = bench.issuer({ expectedKey: node.key });
    await node.setFault('500');
    await issuer.start();
    expect(issuer.payTo()).toBe(node.key);
    expect(issuer.status().ok).toBe(false);
  });

  test('that changes while we run is refused until it is the first one again', async () => {
    await issuer.start();
    const { key } = node;
    const other = nodeKeys('other');
    node.key = other.key;
    node.twist = { privateKey: other.privateKey };
    expect(await refusal(issue())).toBe('503 lightning_unavailable 1');
    await clock.advance(1000);
    await vi.waitFor(() => expect(clock.pendingSleeps()).toEqual([2000]), SOON);
    expect(issuer.status()).toMatchObject({ ok: false, detail: `its key is ${other.key}, and not ${key}` });
    expect(issuer.payTo()).toBe(key);
    node.key = key;
    node.twist = {};
    await clock.advance(2000);
    await settled(true);
    expect(await refusal(issue())).toBe('none');
  });
});

describe('a connection that may spend', () => {
  test('stops the start', async () => {
    issuer = bench.issuer({ power: tooMuch });
    await expect(issuer.start()).rejects.toThrow(TooMuchPower);
    expect(await refusal(issue())).toMatch(/^503 lightning_unavailable/);
  });

  test('that is found only later closes the rail for good', async () => {
    let asked = 0;
    issuer = bench.issuer({ power: () => (++asked === 1 ? undefined : tooMuch()) });
    await node.setFault('500');
    await issuer.start();
    await node.setFault(null);
    await clock.advance(1000);
    await vi.waitFor(() => expect(issuer.status().detail).toBe('it may pay'), SOON);
    expect(bench.logged.join()).toMatch(/"level":"error".*it may pay/);
    expect(clock.pendingSleeps()).toEqual([]);
    expect(await refusal(issue())).toBe('503 lightning_unavailable 300');
    expect(node.invoices).toEqual([]);
  });
});

test('an invoice under way is not offered once the connection turned out to be able to spend', async () => {
  let asked = 0;
  issuer = bench.issuer({ power: () => (++asked === 1 ? undefined : tooMuch()) });
  await issuer.start();
  const make = node.answers['POST /createinvoice'] as (request: Received) => Recorded;
  const held = Promise.withResolvers<void>();
  node.answers['POST /createinvoice'] = (request) => held.promise.then(() => make(request));
  const underWay = refusal(issue());
  await vi.waitFor(() => expect(node.received.at(-1)?.url).toBe('/createinvoice'), SOON);
  node.answers['POST /createinvoice'] = { status: 500, body: '{}' };
  await refusal(issue());
  await clock.advance(1000);
  await vi.waitFor(() => expect(issuer.status().detail).toBe('it may pay'), SOON);
  held.resolve();
  expect(await underWay).toBe('503 lightning_unavailable 300');
  expect(node.invoices).toHaveLength(1);
});

test('stopping ends the search for a node that is away', async () => {
  await node.setFault('500');
  await issuer.start();
  await issuer.stop();
  expect(clock.pendingSleeps()).toEqual([]);
});

test('stopping while the node is asked does not make the node count as away', async () => {
  await node.setFault('500');
  await issuer.start();
  const asked = node.received.length;
  await node.setFault('time-out');
  await clock.advance(1000);
  await vi.waitFor(() => expect(node.received.length).toBeGreaterThan(asked), SOON);
  const before = issuer.status();
  await issuer.stop();
  expect(issuer.status()).toEqual(before);
  expect(logged('warn')).toHaveLength(1);
});
