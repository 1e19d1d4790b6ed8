import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { ENV } from '../../http/harness.ts';
import { configProblems } from '../../support/service/config-problems.ts';

test.each([
  ['/replica/chain.db', '/replica/chain.db'],
  ['replica/chain.db', 'replica/chain.db'],
  ['file:///replica/a%20copy/chain.db', '/replica/a copy/chain.db'],
])('a copy is read where %s says', (CHAIN_DB_URL, file) => {
  expect(loadConfig({ ...ENV, COLLECTOR: 'off', CHAIN_DB_URL }).collector.copyFile).toBe(file);
});

test.each(['https://host/chain.db', 'file://elsewhere/chain.db'])('%s is no copy on this machine', (CHAIN_DB_URL) => {
  expect(configProblems({ ...ENV, COLLECTOR: 'off', CHAIN_DB_URL })).toEqual([
    'CHAIN_DB_URL: a path, or a file:// URL of this machine',
  ]);
});

test.each([{}, { COLLECTOR: 'on' }])('a copy and a collector do not go together (%j)', (env) => {
  const problems = configProblems({ ...ENV, COLLECTOR: '', ...env, CHAIN_DB_URL: '/replica/chain.db' });
  expect(problems).toEqual([expect.stringMatching(/^CHAIN_DB_URL is set without COLLECTOR=off/)]);
});

test('without a copy nothing changes', () => {
  expect(loadConfig({ ...ENV, COLLECTOR: 'off' }).collector.copyFile).toBeNull();
});
