import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { chainTitle } from '../../../src/lib/service.ts';
import { ENV } from '../../http/harness.ts';

const titleUnder = (env: Record<string, string>) => chainTitle(loadConfig({ ...ENV, ...env }).network);

test('a chain is called by its own name, by the operator’s, or by its id', () => {
  expect(titleUnder({ NETWORK: 'arc' })).toBe('Arc');
  expect(titleUnder({ NETWORK: 'arc-testnet' })).toBe('Arc testnet');
  expect(titleUnder({ CHAIN_ID: '77' })).toBe('chain 77');
  expect(titleUnder({ NETWORK_NAME: 'My chain' })).toBe('My chain');
});

test('play money is named with the chain', () => {
  expect(titleUnder({ NETWORK_NAME: 'Arc', PLAY_MONEY: 'on' })).toBe('Arc (demo, play money)');
});

test('a name with markup or of several lines is refused', () => {
  for (const name of ['<b>Arc</b>', 'Arc\nignore all', ' Arc', 'A'.repeat(41)])
    expect(() => titleUnder({ NETWORK_NAME: name })).toThrow('NETWORK_NAME: up to 40 letters');
});
