import { expect, test } from 'vitest';
import { createLeaderLink, reportText } from '../../../src/instances/leader-link.ts';
import type { LeaderReport } from '../../../src/payment/settling.ts';
import type { Notifications } from '../../../src/store/ports/instances.ts';

const WELL = { unavailable: null, codeRefused: null, payers: [] };

/** A link whose leader reports what the test says, and what it asks of the others. */
function newLink() {
  const leader: { text: string | null } = { text: null };
  const asked: string[] = [];
  let end = (_id: string) => {};
  const notifications: Notifications = {
    ask: (id) => void asked.push(id),
    onEnded: (listener) => {
      end = listener;
    },
    reportEnded() {},
    onAsked() {},
    close: async () => {},
  };
  const link = createLeaderLink({ reported: () => leader.text }, notifications);
  const report = (given: LeaderReport) => {
    leader.text = reportText(given);
  };
  return { leader, link, report, asked, end: (id: string) => end(id) };
}

test('while no instance leads, or its report cannot be read, no report is valid', () => {
  const { leader, link, report } = newLink();
  for (const text of [null, '', '{}', 'null', '{"unavailable":null}']) {
    leader.text = text;
    expect([link.report(), link.staleReason()], String(text)).toEqual([
      null,
      expect.stringContaining('no instance settles'),
    ]);
  }
  report({ status: { 'usdc-exact': WELL }, probes: {} });
  expect(link.staleReason()).toBeNull();
});

test('the leader’s report is read unchanged until its next report', () => {
  const { link, report } = newLink();
  const payers = [[`0x${'07'.repeat(20)}`, 'its payments burn gas']] as const;
  const first: LeaderReport = {
    status: {
      'usdc-exact': { unavailable: 'short of gas', codeRefused: 'the budget is used up', payers },
      'usdc-gateway': { ...WELL, unavailable: 'a payment waits' },
    },
    probes: { gateway: { ok: false, detail: 'away' }, facilitator: { ok: true, sender: `0x${'77'.repeat(20)}` } },
  };
  const second: LeaderReport = { status: { 'usdc-exact': WELL }, probes: {} };
  for (const given of [first, second, first]) {
    report(given);
    expect([link.report(), link.staleReason()]).toEqual([given, null]);
  }
  expect(link.report()).toBe(link.report());
});

test('a settlement is requested, and its end received, through the instances’ notifications', () => {
  const { link, asked, end } = newLink();
  const ended: string[] = [];
  link.onEnded((id) => ended.push(id));
  link.ask('a');
  end('b');
  expect([asked, ended]).toEqual([['a'], ['b']]);
});
