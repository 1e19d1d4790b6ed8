import { expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../../../src/config.ts';
import { openCatalogue } from '../../../src/wiring/open-catalogue.ts';

const MINIMUM = { NETWORK: 'arc', SELLER_ADDRESS: `0x${'5e'.repeat(20)}`, RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` };

/** Why the service does not start with these keys beside the least; empty when it does. */
function problemsWith(env: Record<string, string>): readonly string[] {
  try {
    openCatalogue(loadConfig({ ...MINIMUM, ...env }));
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

test('the start refuses faults of PRICES and ROUTES_OFF as it refuses every fault of the environment: all at once', () => {
  expect(problemsWith({})).toEqual([]);
  expect(problemsWith({ PRICES: 'chain/wallet=0.004, web/check=0', ROUTES_OFF: 'selftest/fail,wiki/search' })).toEqual([
    expect.stringMatching(/^PRICES: "web\/check=0": /),
    expect.stringMatching(/^ROUTES_OFF: "selftest\/fail": /),
  ]);
});
