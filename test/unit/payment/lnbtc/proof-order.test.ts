import { describe, expect, test } from 'vitest';
import { LNBTC_REASONS } from '../../../../src/payment/lightning/proof.ts';
import { GONE, judge, outcome, presentation, type Settings } from './proof-cases.ts';
import { INVOICE_CHECKS } from './proof-checks-invoice.ts';
import { TERMS_CHECKS } from './proof-checks-terms.ts';

/** Every check of steps 1 to 7, in the scheme's order. */
const CHECKS = [...TERMS_CHECKS, ...INVOICE_CHECKS];

const asText = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
const shown = (settings: Settings) =>
  Object.entries(settings)
    .map(([path, value]) => `${path} = ${value === GONE ? 'gone' : JSON.stringify(value, asText)?.slice(0, 80)}`)
    .join(', ');

describe('each fault alone has its reason', () => {
  test('a presentation without one passes', () => {
    expect(outcome()).toBe('ok');
  });

  test.each(CHECKS.map((check, index) => [`${index + 1}. step ${check.step}, ${check.reason}`, check] as const))(
    '%s',
    (_, check) => {
      const wrong = check.faults
        .map((fault) => [shown(fault), outcome(fault)])
        .filter(([, reason]) => reason !== check.reason);
      expect(wrong).toEqual([]);
      expect(check.faults.length).toBeGreaterThan(0);
    },
  );

  test("every reason of the list is reached, in the list's order; the last is the claim's", () => {
    const reached = new Set(CHECKS.map(({ reason }) => reason));
    expect([...reached, 'duplicate_settlement']).toEqual(LNBTC_REASONS);
    expect(new Set(LNBTC_REASONS).size).toBe(LNBTC_REASONS.length);
  });
});

describe('of two faults the earlier one is the reason', () => {
  // A few of each check: the first ones and the last one are the most different.
  const sample = (faults: readonly Settings[]) =>
    [...new Set([faults[0], faults[1], faults.at(-1)])].filter((fault) => fault !== undefined);
  /** Two settings of one place cannot stand side by side. */
  const coexist = (a: Settings, b: Settings) => Object.keys(a).every((path) => !Object.hasOwn(b, path));

  test.each(
    CHECKS.slice(0, -1).map(
      (check, index) => [`${index + 1}. step ${check.step}, ${check.reason}`, check, index] as const,
    ),
  )('%s goes before all that follow', (_, check, index) => {
    const wrong: string[] = [];
    let pairs = 0;
    for (const later of CHECKS.slice(index + 1)) {
      for (const first of sample(check.faults)) {
        for (const second of sample(later.faults).filter((fault) => coexist(first, fault))) {
          const verdict = judge(presentation(second, first));
          const reason = verdict.ok ? 'ok' : verdict.reason;
          if (reason !== check.reason) wrong.push(`${shown(first)}; ${shown(second)}: ${reason}`);
          pairs += 1;
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(pairs).toBeGreaterThan(0);
  });
});
