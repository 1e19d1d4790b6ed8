import { expect, test } from 'vitest';
import { readReport, reportText } from '../../../src/instances/report-text.ts';

const PAYER = `0x${'07'.repeat(20)}`;
/** What a leader of the version before writes, byte for byte. */
const BEFORE =
  '{"unavailable":"short of gas","codeRefused":"no budget",' +
  `"payers":[["${PAYER}","its payments burn gas"]],"gatewayUnavailable":"a payment waits",` +
  '"rails":{"gateway":{"ok":false,"detail":"away"}}}';
const REPORT = {
  status: {
    'usdc-exact': {
      ...{ unavailable: 'short of gas', codeRefused: 'no budget' },
      payers: [[PAYER, 'its payments burn gas']] as const,
    },
    'usdc-gateway': { unavailable: 'a payment waits', codeRefused: null, payers: [] },
  },
  probes: { gateway: { ok: false, detail: 'away' } },
};

test('a leader of the version before is understood', () => {
  expect(readReport(BEFORE)).toEqual(REPORT);
});

test('one that does not yet tell of accounts with code refuses none of them', () => {
  const older = '{"unavailable":null,"payers":[],"gatewayUnavailable":null,"rails":{}}';
  expect(readReport(older)?.status['usdc-exact']).toEqual({ unavailable: null, codeRefused: null, payers: [] });
});

test('a follower of the version before finds every member that it reads, with the same content', () => {
  expect(JSON.parse(reportText(REPORT))).toMatchObject(JSON.parse(BEFORE));
  const well = { unavailable: null, codeRefused: null, payers: [], gatewayUnavailable: null, rails: {} };
  expect(JSON.parse(reportText({ status: {}, probes: {} }))).toMatchObject(well);
});

test('a follower of this version reads each rail by its name, one that is off included', () => {
  expect(readReport(reportText(REPORT))).toEqual(REPORT);
  const { 'usdc-exact': exact } = REPORT.status;
  const alone = { status: { 'usdc-exact': exact }, probes: {} };
  expect(readReport(reportText(alone))).toEqual(alone);
});

test.each(['', 'null', '[]', '{}', '{"unavailable":null}', `${BEFORE.slice(0, -1)},"status":{"usdc-exact":{}}}`])(
  '%j is no report',
  (text) => {
    expect(readReport(text)).toBeNull();
  },
);
