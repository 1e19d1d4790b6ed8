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
  // A sleep that is over when the test says so would hang those that nobody waits for.
  link = createPrimaryLink(channel, { nowMs: () => nowMs, sleep: () => new Promise(() => {}) });
});

const WELL: SettlingReport = { status: {}, probes: {} };
function heartbeat(report = WELL): void {
  hear({ kind: 'heartbeat', heartbeat: { port: 4021, report, collector: NO_COLLECTOR.status() } });
}
const turn = () => new Promise((next) => setImmediate(next));

test('an API process says hello and is ready, with its port, at the first heartbeat', async () => {
  expect(sent).toEqual([{ kind: 'hello' }]);
  heartbeat();
  expect(await link.ready).toBe(4021);
  expect(link.collector.status()).toEqual(NO_COLLECTOR.status());
});

test('the primary’s last report is kept, and counts until it has said nothing for five seconds', () => {
  const unavailable = { unavailable: 'short of gas', codeRefused: null, payers: [] };
  const report: SettlingReport = { status: { 'usdc-exact': unavailable }, probes: { gateway: { ok: true } } };
  heartbeat(report);
  expect(link.settling.report()).toEqual(report);
  heartbeat();
  nowMs += 5000;
  expect([link.settling.report(), link.settling.silence(), link.status()]).toEqual([WELL, null, { ok: true }]);
  nowMs += 1;
  expect(link.settling.silence()).toMatch(/does not answer/);
  expect([link.settling.report(), link.status().ok]).toEqual([WELL, false]);
  heartbeat(report);
  expect([link.settling.report(), link.settling.silence(), link.status()]).toEqual([report, null, { ok: true }]);
});

test('what is handed over in one turn goes as one message, and each end is heard', async () => {
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

test('a registry that joins is measured for the primary, and shows the whole service', async () => {
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
