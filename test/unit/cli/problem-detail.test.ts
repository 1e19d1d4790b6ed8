import { expect, test } from 'vitest';
import { problemDetail } from '../../../cli/seller.ts';

test.each([
  ['false', ' (the seller says: not charged)'],
  ['true', ' (the seller says: charged)'],
  ['"unknown"', ' (the seller says: unknown whether it is charged)'],
  ['"false"', ''],
])('a problem’s detail is shown, with what the seller says of the charge: %s', (charged, told) => {
  expect(problemDetail(`{"detail":"osv: no answer","charged":${charged}}`)).toBe(`osv: no answer${told}`);
});

test.each(['', 'null', '[]', '{"detail":1}', '<html>', `{"detail":"${'x'.repeat(5000)}"}`])(
  '%s has no detail',
  (body) => {
    expect(problemDetail(body)).toBeNull();
  },
);
