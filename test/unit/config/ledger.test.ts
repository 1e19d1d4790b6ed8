import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { configProblems } from '../../support/service/config-problems.ts';

const MINIMUM = { NETWORK: 'arc', SELLER_ADDRESS: `0x${'5e'.repeat(20)}`, RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` };

test('the ledger is a file unless a database is named', () => {
  expect(loadConfig(MINIMUM).ledger.url).toBeNull();
  expect(loadConfig({ ...MINIMUM, LEDGER_URL: '' }).ledger.url).toBeNull();
});

test.each([
  'postgres://user:secret@db.example:5432/ledger',
  'postgresql://user@[::1]/ledger?sslmode=verify-full',
  'postgresql:///ledger?host=/var/run/postgresql',
])('%s is a database', (url) => {
  expect(loadConfig({ ...MINIMUM, LEDGER_URL: url }).ledger.url).toBe(url);
});

test.each(['mysql://user:secret@db.example/ledger', 'http://user:secret@db.example', 'ledger:secret', 'secret'])(
  '%s is none, and is not repeated',
  (url) => {
    const problems = configProblems({ ...MINIMUM, LEDGER_URL: url });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/^LEDGER_URL: /);
    expect(problems[0]).not.toContain('secret');
  },
);

test.each([
  ['LEDGER_POOL_SIZE', '3'],
  ['LEDGER_CONNECT_TIMEOUT_MS', '0'],
  ['LEDGER_STATEMENT_TIMEOUT_MS', '10'],
])('%s=%s is refused: nothing would ever be written', (key, value) => {
  expect(configProblems({ ...MINIMUM, [key]: value })).toEqual([expect.stringContaining(`${key}: `)]);
});

test('WORKERS above 1, which earlier releases had, stops the start with a sentence that says what to do', () => {
  const [problem, ...more] = configProblems({ ...MINIMUM, WORKERS: '2' });
  expect([problem, more]).toEqual([expect.stringMatching(/^WORKERS is gone: .*instances over one LEDGER_URL/), []]);
  expect(configProblems({ ...MINIMUM, WORKERS: '1' })).toEqual([]);
  expect(configProblems({ ...MINIMUM, WORKERS: '' })).toEqual([]);
});
