import { Counter, Registry } from 'prom-client';
import { beforeEach, expect, test } from 'vitest';
import type { Beat, ToPrimary, ToWorker } from '../../../src/cluster/messages.ts';
import { createPrimaryLink, type PrimaryLink } from '../../../src/cluster/primary-link.ts';
import { NO_COLLECTOR } from '../../../src/store/chain/collector-status.ts';

const [PAYER, OTHER] = [Buffer.alloc(20, 7), Buffer.alloc(20, 8)];

let nowMs: number;
let sent: ToPrimary[];
let hear: (message: ToWorker) => void;
let link: PrimaryLink;
beforeEach(() => {
  nowMs = 1_800_000_000_000;
  sent = [];
  hear = () => {};
  const channel = {
    send: (message: ToPrimary) => void sent.push(message),
    onMessage: (listener: typeof hear) => {
      hear = listener;
    },
  };
  // A sleep that is over when the test says so would hang those that nobody waits for.
  link = createPrimaryLink(channel, { nowMs: () => nowMs, sleep: () => new Promise(() => {}) });
});

function beat(change: Partial<Beat['refusals']> = {}): void {
  const nothing = { unavailable: null, codeRefused: null, payers: [], gatewayUnavailable: null, rails: {} };
  const refusals = { ...nothing, ...change };
  hear({ kind: 'beat', beat: { port: 4021, refusals, collector: NO_COLLECTOR.status() } });
}
const turn = () => new Promise((next) => setImmediate(next));

test('an API process says hello and is ready, with its port, at the first word', async () => {
  expect(sent).toEqual([{ kind: 'hello' }]);
  beat();
  expect(await link.ready).toBe(4021);
  expect(link.collector.status()).toEqual(NO_COLLECTOR.status());
});

test('nothing can be settled while the primary says so, or has said nothing for five seconds', () => {
  beat({ unavailable: 'the relayer is short of gas' });
  expect(link.settling.unavailable()).toBe('the relayer is short of gas');
  beat();
  nowMs += 5000;
  expect([link.settling.unavailable(), link.status()]).toEqual([null, { ok: true }]);
  nowMs += 1;
  expect(link.settling.unavailable()).toMatch(/does not answer/);
  expect(link.status().ok).toBe(false);
  beat();
  expect([link.settling.unavailable(), link.status()]).toEqual([null, { ok: true }]);
});

test('the Gateway is told of by itself, and a silent primary ends its sales too', () => {
  beat({ gatewayUnavailable: 'a payment waits', rails: { gateway: { ok: false, detail: 'away' } } });
  expect([link.settling.unavailable(), link.settling.gatewayUnavailable()]).toEqual([null, 'a payment waits']);
  expect(link.settling.rails()).toEqual({ gateway: { ok: false, detail: 'away' } });
  beat();
  expect(link.settling.gatewayUnavailable()).toBeNull();
  nowMs += 5001;
  expect(link.settling.gatewayUnavailable()).toMatch(/does not answer/);
});

test('a payer is refused whom the primary refuses, and nobody else', () => {
  beat({ payers: [[`0x${PAYER.toString('hex')}`, 'its payments burn gas']] });
  expect(link.settling.refuses(PAYER)).toBe('its payments burn gas');
  expect(link.settling.refuses(OTHER)).toBeNull();
  beat();
  expect(link.settling.refuses(PAYER)).toBeNull();
});

test('accounts with code are refused while the primary refuses them, and plain accounts are not', () => {
  beat();
  expect(link.settling.refusesCode()).toBeNull();
  beat({ codeRefused: 'the budget is used up' });
  expect([link.settling.refusesCode(), link.settling.unavailable()]).toEqual(['the budget is used up', null]);
  beat();
  expect(link.settling.refusesCode()).toBeNull();
});

test('what is handed over in one turn goes as one message, and each end is told', async () => {
  const ended: string[] = [];
  link.settling.onEnded((id) => ended.push(id));
  link.settling.ask('a');
  link.settling.ask('b');
  await turn();
  link.settling.ask('c');
  await turn();
  expect(sent.slice(1)).toEqual([
    { kind: 'settle', ids: ['a', 'b'] },
    { kind: 'settle', ids: ['c'] },
  ]);
  hear({ kind: 'ended', ids: ['b', 'a'] });
  expect(ended).toEqual(['b', 'a']);
});

test('a registry that joins is measured for the primary, and tells of the whole service', async () => {
  const registry = new Registry();
  new Counter({ name: 'sold_total', help: 'Sold', registers: [registry] }).inc(3);
  link.joinMetrics(registry);
  hear({ kind: 'measure', ask: 5 });
  await turn();
  expect(sent.at(-1)).toMatchObject({ kind: 'measured', ask: 5, metrics: [{ name: 'sold_total' }] });
  const all = registry.metrics();
  expect(sent.at(-1)).toEqual({ kind: 'read', ask: 1 });
  hear({ kind: 'metrics', ask: 1, text: 'sold_total 8' });
  expect(await all).toBe('sold_total 8');
  const none = registry.metrics();
  hear({ kind: 'metrics', ask: 2, text: null });
  await expect(none).rejects.toMatchObject({ code: 'metrics_unavailable' });
});
