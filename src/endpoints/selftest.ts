import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { AppError } from '../errors.ts';
import { nowSeconds } from '../lib/clock.ts';
import { bytesToHex } from '../lib/hex.ts';
import { sourceSchema } from '../lib/service.ts';
import type { SelfTestRun } from '../store/ports/stores.ts';
import { DAY_SECONDS, field } from './fields.ts';
import type { Sources } from './sources.ts';

// The results of the service's hourly purchases from itself, and the priced route that always fails.

/** A day of hourly runs. */
const RECENT = 24;

const NOTES = {
  on:
    'The service’s own wallet buying the service’s own endpoint through its public URL. This is not customer ' +
    'activity.',
  off:
    'No wallet is configured for the self-test: it is off, and what stands here is of the past. None of it is ' +
    'customer activity.',
};

const run = {
  at: field.at('When the run began'),
  ok: field.boolean(
    'The call was answered, the chain holds exactly its payment, and the call that must fail without charging cost ' +
      'nothing',
  ),
  latencyMs: field.countOrNull(
    'The whole paid call, the 402 and the settlement included; null when it was not answered',
  ),
  transaction: field.hash('The settlement of the paid call').nullable(),
};

const EXAMPLE_RUN = { at: 1795199400, ok: true, latencyMs: 742, transaction: `0x${'5e'.repeat(32)}` };

export const selftest = defineEndpoint({
  path: '/selftest',
  access: 'free',
  label: 'Self-test',
  summary:
    "Hourly self-test of the payment rail: the service's own wallet buying its own endpoint, plus the endpoint that " +
    'must fail without charging. Not customer activity.',
  notFor: 'sales figures',
  tags: null,
  ofChain: false,
  params: z.object({}),
  result: z.strictObject({
    note: field.text('What this is, and what it is not'),
    last: field.objectOrNull('The newest run; null before the first', run),
    lastNotCharged: field.objectOrNull(
      'The newest run that got as far as the call that must fail; null before the first',
      { at: run.at, ok: field.boolean('The failing call cost nothing') },
    ),
    last24h: z.strictObject({ runs: z.int().nonnegative(), ok: z.int().nonnegative() }),
    recent: field.list(`The last ${RECENT} runs, newest first`, {
      ...run,
      notCharged: field.booleanOrNull('The failing call cost nothing; null when that could not be seen'),
      reason: field.textOrNull('Why the run was not ok, as a short code; null when it was'),
    }),
    source: sourceSchema,
  }),
  example: {
    params: {},
    result: {
      note: NOTES.on,
      last: EXAMPLE_RUN,
      lastNotCharged: { at: EXAMPLE_RUN.at, ok: true },
      last24h: { runs: 24, ok: 24 },
      recent: [{ ...EXAMPLE_RUN, notCharged: true, reason: null }],
      source: {
        name: "The service's purchases from itself",
        url: 'https://api.example.com',
        retrievedAt: EXAMPLE_RUN.at,
      },
    },
  },
  async run(_params, { selfTests, clock }: Pick<Sources, 'selfTests' | 'clock'>) {
    const { results, enabled, origin } = selfTests;
    const now = nowSeconds(clock);
    const [recent, checked, last24h] = await Promise.all([
      results.recent(RECENT),
      results.lastChecked(),
      results.countSince((now - DAY_SECONDS) * 1000),
    ]);
    const [newest] = recent;
    return {
      note: enabled ? NOTES.on : NOTES.off,
      last: newest ? show(newest) : null,
      lastNotCharged: checked && { at: seconds(checked.at), ok: checked.notCharged === true },
      last24h,
      recent: recent.map((entry) => ({ ...show(entry), notCharged: entry.notCharged, reason: entry.reason })),
      source: {
        name: "The service's purchases from itself",
        url: origin,
        // The last run's time: two answers over the same runs have the same bytes.
        retrievedAt: newest ? seconds(newest.at) : now,
      },
    };
  },
});

function show({ at, ok, latencyMs, transaction }: SelfTestRun) {
  return { at: seconds(at), ok, latencyMs, transaction: transaction && bytesToHex(transaction) };
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}

export const selftestFail = defineEndpoint({
  path: '/selftest/fail',
  access: 'paid',
  // Not sold for bitcoin, because a Lightning payment cannot be returned.
  onlyOn: 'paid',
  priceUsd: '0.001',
  label: 'Self-test that fails',
  summary: 'Never succeeds: after the payment is verified it answers 500 and the payment is never settled.',
  notFor: 'data of any kind: it shows that a failure costs nothing',
  tags: null,
  ofChain: false,
  params: z.object({}),
  result: field.object('Never returned', {}),
  example: { params: {}, result: {} },
  async run() {
    throw new AppError(
      500,
      'selftest_failed',
      'This route always fails, on purpose. The payment was not settled: you were not charged.',
      { isExpected: true },
    );
  },
});
