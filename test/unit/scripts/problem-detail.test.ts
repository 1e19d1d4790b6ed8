import { expect, test } from 'vitest';
import { problemDetail } from '../../../scripts/lib/pay/problem-detail.ts';

test('a problem’s detail is shown, and that nothing was charged', () => {
  expect(problemDetail('{"detail":"osv: no answer","charged":false}')).toBe('osv: no answer (not charged)');
  expect(problemDetail('{"detail":"wait","charged":"unknown"}')).toBe('wait');
});

test.each(['', 'null', '[]', '{"detail":1}', '<html>', `{"detail":"${'x'.repeat(5000)}"}`])(
  '%s has no detail',
  (body) => {
    expect(problemDetail(body)).toBeNull();
  },
);
