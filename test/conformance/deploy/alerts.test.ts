import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readAlerts, secondsOf } from '../../support/deploy/files.ts';
import { programsMissing, runProgram } from '../../support/deploy/programs.ts';

// When each alert fires, and that it does not fire before, nor while all is well: `promtool test rules` computes it from given series, so that hours take
// no time. prometheus.test.ts brings the faults about.

type Series = Readonly<Record<string, string>>;

/** Series by name, a value a minute from 0 on. The alert's expression is true from `from` on, in seconds. */
interface Fault {
  readonly series: Series;
  readonly from: number;
  /** The labels that the alert has besides its own. */
  readonly labels?: Series;
}

/** The evaluations are so many seconds apart. */
const EVERY_S = 15;
/** Those of a whole day. Most fall between two readings, as in life: then Prometheus extrapolates an increase. */
const DAY_EVERY_S = 45;
/** A day: every expression's window is full by then. */
const MINUTES = 1500;

/** The values of a gauge or a counter: `before` for eleven minutes, then `after`. */
const step = (before: number, after: number): string => `${before}x10 ${after}x${MINUTES}`;
const still = (value: number): string => `${value}x${MINUTES}`;
const rising = (perMinute: number): string => `0+${perMinute}x${MINUTES}`;
/** When a step has happened. */
const STEP = 660;

/** For each alert what makes it fire, and series of a service that is well and busy, or nearly unwell. */
const CASES: Readonly<Record<string, { readonly faults: readonly Fault[]; readonly well: Series }>> = {
  PaymentStuck: {
    faults: [{ series: { payment_oldest_open_timestamp_seconds: still(0) }, from: 315 }],
    well: { payment_oldest_open_timestamp_seconds: `-240+60x${MINUTES}` },
  },
  OutcomesUnknown: {
    faults: [{ series: { 'payment_moves_total{rail="usdc",state="unknown"}': step(0, 10) }, from: STEP }],
    well: { 'payment_moves_total{rail="usdc",state="unknown"}': step(0, 4) },
  },
  SettlementsFail: {
    faults: [
      {
        series: {
          'payment_moves_total{rail="usdc",state="settling"}': rising(10),
          'payment_moves_total{rail="usdc",state="failed"}': `0x10 100+1x${MINUTES}`,
        },
        from: STEP,
      },
    ],
    well: {
      'payment_moves_total{rail="usdc",state="settling"}': rising(100),
      'payment_moves_total{rail="usdc",state="failed"}': rising(4),
    },
  },
  SettlementsSlow: {
    faults: [
      {
        series: {
          'payment_settlement_duration_seconds_bucket{outcome="settled",le="5"}': still(0),
          'payment_settlement_duration_seconds_bucket{outcome="settled",le="10"}': `0x10 10+10x${MINUTES}`,
          'payment_settlement_duration_seconds_bucket{outcome="settled",le="+Inf"}': `0x10 10+10x${MINUTES}`,
        },
        from: STEP,
      },
    ],
    well: {
      'payment_settlement_duration_seconds_bucket{outcome="settled",le="5"}': rising(1000),
      'payment_settlement_duration_seconds_bucket{outcome="settled",le="10"}': rising(1001),
      'payment_settlement_duration_seconds_bucket{outcome="settled",le="+Inf"}': rising(1001),
    },
  },
  MaintenanceFails: {
    faults: [
      {
        series: { 'payment_maintenance_failing{round="reconcile"}': step(0, 1) },
        from: STEP,
        labels: { round: 'reconcile' },
      },
    ],
    well: { 'payment_maintenance_failing{round="reconcile"}': still(0) },
  },
  RepliesNearlyFull: {
    faults: ['payment_reply_bytes', 'payment_lightning_reply_bytes'].map((name) => ({
      series: { [name]: step(10, 81), payment_reply_bytes_limit: still(100) },
      from: STEP,
    })),
    well: {
      payment_reply_bytes: still(79),
      payment_lightning_reply_bytes: still(79),
      payment_reply_bytes_limit: still(100),
    },
  },
  ClaimedNotDelivered: {
    faults: [
      {
        series: {
          'payment_moves_total{rail="lightning",state="claimed"}': step(0, 5),
          'payment_moves_total{rail="lightning",state="delivered"}': still(0),
        },
        from: STEP,
      },
    ],
    well: {
      'payment_moves_total{rail="lightning",state="claimed"}': `0x10 3+7x${MINUTES}`,
      'payment_moves_total{rail="lightning",state="delivered"}': `0x10 1+7x${MINUTES}`,
    },
  },
  PaymentHashContested: {
    faults: [
      {
        series: { 'lightning_contested_hashes_total{payee="ours"}': step(0, 1) },
        from: STEP,
        labels: { payee: 'ours' },
      },
    ],
    well: { 'lightning_contested_hashes_total{payee="others"}': rising(1) },
  },
  RelayerShortOfGas: {
    faults: [
      { series: { relayer_balance_usdc: step(5, 0.9), relayer_needed_usdc: still(0.1) }, from: STEP },
      { series: { relayer_balance_usdc: still(5), relayer_needed_usdc: step(0.1, 1.1) }, from: STEP },
    ],
    well: {
      'relayer_balance_usdc{job="percall",instance="a:4021"}': still(1.1),
      'relayer_needed_usdc{job="percall",instance="a:4021"}': still(0.2),
      'instance_leads{job="percall",instance="a:4021"}': still(1),
      // It has led before.
      'relayer_balance_usdc{job="percall",instance="b:4021"}': still(0.1),
      'relayer_needed_usdc{job="percall",instance="b:4021"}': still(0.2),
      'instance_leads{job="percall",instance="b:4021"}': still(0),
    },
  },
  GasBudgetNearlySpent: {
    faults: [{ series: { relayer_gas_spent_today_usdc: step(1, 4.1), relayer_gas_budget_usdc: still(5) }, from: STEP }],
    well: { relayer_gas_spent_today_usdc: still(3.9), relayer_gas_budget_usdc: still(5) },
  },
  SettlementsMoveNothing: {
    faults: [
      {
        series: { relayer_gas_failed_today_usdc: step(0, 0.6), relayer_gas_failed_budget_usdc: still(1) },
        from: STEP,
      },
    ],
    well: { relayer_gas_failed_today_usdc: still(0.4), relayer_gas_failed_budget_usdc: still(1) },
  },
  SettlingCostsMoreThanItEarns: {
    faults: [
      {
        series: {
          'relayer_cost_usdc_total{rail="usdc-exact"}': rising(0.0023),
          'payment_income_usdc_total{rail="usdc-exact"}': rising(0.002),
        },
        from: 60,
        labels: { rail: 'usdc-exact' },
      },
    ],
    well: {
      'relayer_cost_usdc_total{rail="usdc-exact"}': rising(0.0023),
      'payment_income_usdc_total{rail="usdc-exact"}': rising(0.005),
      // A rail that is idle earns nothing and costs nothing.
      'relayer_cost_usdc_total{rail="usdc-channels"}': still(1),
      'payment_income_usdc_total{rail="usdc-channels"}': still(0),
    },
  },
  ChargesNotClaimed: {
    faults: [{ series: { channels_oldest_unclaimed_timestamp_seconds: still(0) }, from: 43_215 }],
    well: { channels_oldest_unclaimed_timestamp_seconds: `-43000+60x${MINUTES}` },
  },
  ClaimRefused: {
    faults: [{ series: { channels_refused: step(0, 1) }, from: STEP }],
    well: { channels_refused: still(0) },
  },
  LedgerLacksMoney: {
    faults: [
      {
        series: { 'ledger_mismatch_usdc{rail="usdc-exact"}': step(0, 0.002) },
        from: STEP,
        labels: { rail: 'usdc-exact' },
      },
    ],
    well: { 'ledger_mismatch_usdc{rail="usdc-exact"}': still(0) },
  },
  SelfTestFails: {
    faults: [{ series: { 'selftest_runs_total{ok="false"}': step(0, 2) }, from: STEP, labels: { ok: 'false' } }],
    // Prometheus extrapolates: an increase by one is a little more than one.
    well: { 'selftest_runs_total{ok="false"}': `0x300 1x${MINUTES}`, 'selftest_runs_total{ok="true"}': rising(1) },
  },
  InstanceDown: {
    faults: [
      {
        series: { 'up{job="percall",instance="a:4021"}': step(1, 0), 'up{job="percall",instance="b:4021"}': still(1) },
        from: STEP,
        labels: { job: 'percall', instance: 'a:4021' },
      },
    ],
    well: { 'up{job="percall",instance="a:4021"}': still(1), 'up{job="others"}': still(0) },
  },
  NobodyLeads: {
    faults: [
      {
        // The leader is gone, and the other one does not lead.
        series: {
          'instance_leads{job="percall",instance="a:4021"}': '1x10 stale',
          'instance_leads{job="percall",instance="b:4021"}': still(0),
        },
        from: STEP,
        labels: { job: 'percall' },
      },
    ],
    well: {
      'instance_leads{job="percall",instance="a:4021"}': step(1, 0),
      'instance_leads{job="percall",instance="b:4021"}': step(0, 1),
    },
  },
  Errors: {
    faults: [
      {
        series: {
          'http_requests_total{route="/a",status="200"}': rising(10),
          'http_requests_total{route="/a",status="503"}': `0x10 100+1x${MINUTES}`,
        },
        from: STEP,
      },
    ],
    well: {
      'http_requests_total{route="/a",status="200"}': rising(100),
      'http_requests_total{route="/a",status="402"}': rising(100),
      'http_requests_total{route="/a",status="503"}': rising(9),
    },
  },
  ConnectionsNearlyUsedUp: {
    faults: [{ series: { http_connections: step(10, 81), http_connections_limit: still(100) }, from: STEP }],
    well: {
      'http_connections{instance="a"}': still(79),
      'http_connections_limit{instance="a"}': still(100),
      // 0 is no limit.
      'http_connections{instance="b"}': still(500),
      'http_connections_limit{instance="b"}': still(0),
    },
  },
  LedgerUnreadable: {
    faults: [
      {
        series: {
          'up{job="percall",instance="a:4021"}': still(1),
          'payments_open{job="percall",instance="a:4021",state="settling"}': '0x10 stale',
          'up{job="percall",instance="b:4021"}': still(1),
          'payments_open{job="percall",instance="b:4021",state="settling"}': still(0),
        },
        from: STEP,
        labels: { job: 'percall', instance: 'a:4021' },
      },
    ],
    well: {
      'up{job="percall",instance="a:4021"}': still(1),
      'payments_open{job="percall",instance="a:4021",state="settling"}': still(0),
    },
  },
  LedgerNotWritable: {
    faults: [{ series: { ledger_writable: step(1, 0) }, from: STEP }],
    well: { ledger_writable: still(1) },
  },
  NoTwoProvidersAgree: {
    faults: [{ series: { rpc_agreement: step(1, 0) }, from: STEP }],
    well: { rpc_agreement: still(1) },
  },
  ProviderAway: {
    faults: [
      {
        series: { 'rpc_provider_trusted{provider="a.example"}': step(1, 0) },
        from: STEP,
        labels: { provider: 'a.example' },
      },
      { series: { 'rpc_probe_up{endpoint="a.example"}': step(1, 0) }, from: STEP, labels: { endpoint: 'a.example' } },
    ],
    well: {
      'rpc_provider_trusted{provider="a.example"}': `1x100 0x3 1x${MINUTES}`,
      'rpc_probe_up{endpoint="a.example"}': `1x100 0x3 1x${MINUTES}`,
    },
  },
  ProviderContradicts: {
    faults: [
      {
        series: { 'rpc_contradictions_total{provider="a.example"}': step(0, 1) },
        from: STEP,
        labels: { provider: 'a.example' },
      },
    ],
    well: { 'rpc_contradictions_total{provider="a.example"}': still(1) },
  },
  HeadStandsStill: {
    faults: [{ series: { collector_head_moved_timestamp_seconds: still(0) }, from: 75 }],
    // A scrape a minute apart: the head moves right before each.
    well: { collector_head_moved_timestamp_seconds: `0+60x${MINUTES}` },
  },
  CollectorBehind: {
    faults: [{ series: { collector_lag_blocks: step(2, 121) }, from: STEP }],
    well: { collector_lag_blocks: still(119) },
  },
};

const alerts = readAlerts();

test('every alert has its cases, and every case its alert', () => {
  expect(Object.keys(CASES).sort()).toEqual(alerts.map(({ alert }) => alert).sort());
});

const missing = programsMissing('promtool');
const skipped = missing === null ? '' : ` (skipped, ${missing})`;

describe.skipIf(missing !== null)(`promtool test rules${skipped}`, () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'percall-alerts-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs series through an alert alone, because all of them over a day take promtool ten seconds. `expected`: which alert is looked at when, and the labels with which it fires. */
  async function run(
    name: string,
    series: Series,
    expected: readonly { at: number; labels: Series | null }[],
    everyS = EVERY_S,
  ) {
    const own = alerts.find(({ alert }) => alert === name);
    if (!own) throw new Error(`${name} is no alert`);
    const { labels, annotations: exp_annotations } = own;
    const [rules, file] = [join(folder, `${name}.rules.yml`), join(folder, `${name}.yml`)];
    // JSON is YAML.
    writeFileSync(rules, JSON.stringify({ groups: [{ name, rules: [own] }] }));
    const text = JSON.stringify({
      rule_files: [rules],
      evaluation_interval: `${everyS}s`,
      tests: [
        {
          interval: '1m',
          input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
          alert_rule_test: expected.map(({ at, labels: more }) => ({
            eval_time: `${at}s`,
            alertname: name,
            exp_alerts: more ? [{ exp_labels: { ...labels, ...more }, exp_annotations }] : [],
          })),
        },
      ],
    });
    writeFileSync(file, text);
    return runProgram('promtool', ['test', 'rules', file]);
  }

  describe.each(alerts.map((one) => [one.alert, one] as const))('%s', (name, { for: wait }) => {
    const waits = secondsOf(wait);
    const { faults, well } = CASES[name] ?? { faults: [], well: {} };

    test(`fires ${waits} s after its fault has begun, and no evaluation before`, async () => {
      expect(faults.length).toBeGreaterThan(0);
      for (const { series, from, labels = {} } of faults) {
        const at = from + waits;
        const { code, output } = await run(name, series, [
          { at: at - EVERY_S, labels: null },
          { at, labels },
        ]);
        expect(code, output).toBe(0);
      }
    });

    test('is quiet for a day while all is well', async () => {
      const times = Array.from({ length: 94 }, (_, at) => ({ at: (at + 1) * 21 * DAY_EVERY_S, labels: null }));
      const { code, output } = await run(name, well, times, DAY_EVERY_S);
      expect(code, output).toBe(0);
    });
  });

  test('would notice an alert that fires too late', async () => {
    const { code } = await run('ClaimRefused', { channels_refused: step(0, 1) }, [{ at: STEP - EVERY_S, labels: {} }]);
    expect(code).toBe(1);
  });
});
