import { Counter, Registry } from 'prom-client';
import { beforeEach, expect, test } from 'vitest';
import type { ToPrimary, ToWorker } from '../../../src/cluster/messages.ts';
import { createPrimaryLink, type PrimaryLink } from '../../../src/cluster/primary-link.ts';
import type { SettlingReport } from '../../../src/payment/settling.ts';
import { NO_COLLECTOR } from '../../../src/store/chain/collector-status.ts';

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
  // Sleeps never end, because the test does not await them.
  link = createPrimaryLink(channel, { nowMs: () => nowMs, sleep: () => new Promise(() => {}) });
});

const WELL: SettlingReport = { status: {}, probes: {} };
function heartbeat(report = WELL): void {
  hear({ kind: 'heartbeat', heartbeat: { port: 4021, report, collector: NO_COLLECTOR.status() } });
}
const turn = () => new Promise((next) => setImmediate(next));

test('an API process sends hello and is ready, with its port, at the first heartbeat', async () => {
  expect(sent).toEqual([{ kind: 'hello' }]);
  heartbeat();
  expect(await link.ready).toBe(4021);
  expect(link.collector.status()).toEqual(NO_COLLECTOR.status());
});

test('the primary’s last report is valid until no heartbeat has come for five seconds', () => {
  const unavailable = { unavailable: 'short of gas', codeRefused: null, payers: [] };
  const report: SettlingReport = { status: { 'usdc-exact': unavailable }, probes: { gateway: { ok: true } } };
  heartbeat(report);
  expect(link.settling.report()).toEqual(report);
  heartbeat();
  nowMs += 5000;
  expect([link.settling.report(), link.settling.staleReason(), link.status()]).toEqual([WELL, null, { ok: true }]);
  nowMs += 1;
  expect(link.settling.staleReason()).toMatch(/does not answer/);
  expect([link.settling.report(), link.status().ok]).toEqual([WELL, false]);
  heartbeat(report);
  expect([link.settling.report(), link.settling.staleReason(), link.status()]).toEqual([report, null, { ok: true }]);
});

test('the settlements of one event loop turn are one message, and each end is reported', async () => {
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

test('a joined registry sends its figures to the primary, and shows those of the whole service', async () => {
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
