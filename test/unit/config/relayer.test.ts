import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { ENV } from '../../http/harness.ts';

const assembled = (env: Record<string, string>) => loadConfig({ ...ENV, ...env }).relayer;

test('by default the batch window is 100 ms, a batch takes 60 % of a block, and a day’s gas may cost 5 USDC and its income, its failures one', () => {
  expect(assembled({})).toEqual({
    gatherMs: 100,
    blockSharePercent: 60,
    dailyGas: { wei: 5n * 10n ** 18n, plusIncome: true },
    dailyFailuresWei: 10n ** 18n,
  });
});

test('off is no limit of the day’s gas', () => {
  expect(assembled({ RELAYER_DAILY_GAS_USDC: 'off' }).dailyGas).toBeNull();
});

test.each([
  ['0', 0n],
  ['1', 10n ** 18n],
  ['2.5', 25n * 10n ** 17n],
  ['0.000001', 10n ** 12n],
  ['123456789.654321', 123_456_789_654_321n * 10n ** 12n],
])('a daily budget of %s USDC is so many wei, whatever comes in', (usdc, wei) => {
  expect(assembled({ RELAYER_DAILY_GAS_USDC: usdc }).dailyGas).toEqual({ wei, plusIncome: false });
});

test.each([
  ['0', null],
  ['0.000000', null],
  ['0.000001', 10n ** 12n],
  ['12.5', 125n * 10n ** 17n],
])('a daily budget of %s USDC for what fails is so many wei; nothing turns it off', (usdc, wei) => {
  expect(assembled({ RELAYER_DAILY_FAILURES_USDC: usdc }).dailyFailuresWei).toBe(wei);
});

test.each([
  ['RELAYER_DAILY_FAILURES_USDC', '-1'],
  ['RELAYER_DAILY_FAILURES_USDC', 'off'],
  ['RELAYER_DAILY_FAILURES_USDC', '0.0000001'],
  ['RELAYER_DAILY_GAS_USDC', '-1'],
  ['RELAYER_DAILY_GAS_USDC', '1e3'],
  ['RELAYER_DAILY_GAS_USDC', 'OFF'],
  ['RELAYER_DAILY_GAS_USDC', '0.0000001'],
  ['RELAYER_BLOCK_SHARE', '0'],
  ['RELAYER_BLOCK_SHARE', '101'],
  ['RELAYER_GATHER_MS', '5001'],
])('%s=%s is refused', (key, value) => {
  expect(() => assembled({ [key]: value })).toThrow(`${key}: `);
});
