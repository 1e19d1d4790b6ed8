import { expect, test } from 'vitest';
import { ENV } from '../../http/harness.ts';
import { configProblems } from '../../support/service/config-problems.ts';

const KEY = `0x${'11'.repeat(32)}`;
const problems = (env: Record<string, string>) =>
  configProblems({ ...ENV, CHANNELS: 'on', CHANNELS_AUTHORIZER_KEY: KEY, RELAYER_PRIVATE_KEY: KEY, ...env });
const tooLate = (delay: number) =>
  `CHANNELS_CLAIM_AFTER_SECONDS must be less than half of CHANNELS_WITHDRAW_DELAY_SECONDS (${delay}): a claim must beat a withdrawal`;

test('the default age of a claim fits the default delay of a withdrawal', () => {
  expect(problems({})).toEqual([]);
});

test.each<[Record<string, string>, string[]]>([
  [{ CHANNELS_CLAIM_AFTER_SECONDS: '43199' }, []],
  [{ CHANNELS_CLAIM_AFTER_SECONDS: '43200' }, [tooLate(86_400)]],
  [{ CHANNELS_WITHDRAW_DELAY_SECONDS: '43201' }, []],
  [{ CHANNELS_WITHDRAW_DELAY_SECONDS: '43200' }, [tooLate(43_200)]],
  [{ CHANNELS_WITHDRAW_DELAY_SECONDS: '901', CHANNELS_CLAIM_AFTER_SECONDS: '450' }, []],
  [{ CHANNELS_WITHDRAW_DELAY_SECONDS: '900', CHANNELS_CLAIM_AFTER_SECONDS: '450' }, [tooLate(900)]],
  [{ CHANNELS: 'off', CHANNELS_CLAIM_AFTER_SECONDS: '43200' }, []],
])('a claim that may come too late to beat a withdrawal is refused at start: %j', (env, expected) => {
  expect(problems(env)).toEqual(expected);
});
