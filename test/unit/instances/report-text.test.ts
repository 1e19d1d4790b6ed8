import { expect, test } from 'vitest';
import { readReport, reportText } from '../../../src/instances/leader-link.ts';

const PAYER = `0x${'07'.repeat(20)}`;
/** The report of a leader of the previous version, byte for byte. */
const BEFORE =
  '{"unavailable":"short of gas","codeRefused":"no budget",' +
  `"payers":[["${PAYER}","its payments burn gas"]],"gatewayUnavailable":"a payment waits",` +
  '"rails":{"gateway":{"ok":false,"detail":"away"}}}';
const REPORT = {
  status: {
    'usdc-exact': {
      unavailable: 'short of gas',
      codeRefused: 'no budget',
      payers: [[PAYER, 'its payments burn gas']] as const,
    },
    'usdc-gateway': { unavailable: 'a payment waits', codeRefused: null, payers: [] },
  },
  probes: { gateway: { ok: false, detail: 'away' } },
};

test('the report of a leader of the previous version can be read', () => {
  expect(readReport(BEFORE)).toEqual(REPORT);
});

test('a report without accounts with code refuses none of them', () => {
  const older = '{"unavailable":null,"payers":[],"gatewayUnavailable":null,"rails":{}}';
  expect(readReport(older)?.status['usdc-exact']).toEqual({ unavailable: null, codeRefused: null, payers: [] });
});

test('an instance of the previous version finds every member that it reads, with the same content', () => {
  expect(JSON.parse(reportText(REPORT))).toMatchObject(JSON.parse(BEFORE));
  const well = { unavailable: null, codeRefused: null, payers: [], gatewayUnavailable: null, rails: {} };
  expect(JSON.parse(reportText({ status: {}, probes: {} }))).toMatchObject(well);
});

test('what ends the sales alone is told apart from what ends the sending', () => {
  const spent = { unavailable: 'the budget is used up', cannotSend: null, codeRefused: null, payers: [] };
  const report = { status: { 'usdc-exact': spent }, probes: {} };
  expect(readReport(reportText(report))).toEqual(report);
});

test('an instance of this version reads each rail by its name, also one that is off', () => {
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
