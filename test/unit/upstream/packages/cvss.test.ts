import { describe, expect, test } from 'vitest';
import { labelOfScore, scoreVector } from '../../../../src/upstream/packages/osv.ts';

describe('scoreVector', () => {
  // The scores that FIRST's own calculators and GitHub's advisories give.
  test.each([
    ['CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H', 9.8],
    ['CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H', 10],
    ['CVSS:3.1/AV:N/AC:L/PR:H/UI:N/S:U/C:H/I:H/A:H', 7.2],
    ['CVSS:3.0/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N', 6.1],
    ['CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N', 0],
    ['CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H/E:U/RL:O/RC:U', 9.8],
    ['CVSS:4.0/AV:L/AC:L/AT:P/PR:L/UI:P/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N', 5.4],
    ['CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:H/SI:H/SA:H', 10],
    ['CVSS:4.0/AV:N/AC:L/AT:P/PR:N/UI:N/VC:N/VI:N/VA:L/SC:N/SI:N/SA:N', 6.3],
    ['CVSS:4.0/AV:N/AC:L/AT:P/PR:N/UI:N/VC:N/VI:N/VA:L/SC:N/SI:N/SA:N/E:U', 1.7],
  ])('%s scores %d', (vector, score) => {
    expect(scoreVector(vector)).toBe(score);
  });

  test.each([
    '',
    '9.8',
    'CVSS:3.1',
    'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H',
    'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:X',
    'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H/nonsense',
    'CVSS:3.1/AV:Q/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H',
    'CVSS:4.0/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H',
    'CVSS:5.0/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H',
    'AV:N/AC:L/Au:N/C:P/I:P/A:P',
    `CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H${'/A:H'.repeat(200)}`,
  ])('%s has none', (vector) => {
    expect(scoreVector(vector)).toBeNull();
  });
});

test.each([
  [0, 'none'],
  [0.1, 'low'],
  [3.9, 'low'],
  [4, 'medium'],
  [6.9, 'medium'],
  [7, 'high'],
  [8.9, 'high'],
  [9, 'critical'],
  [10, 'critical'],
])('%d is %s', (score, label) => {
  expect(labelOfScore(score)).toBe(label);
});
