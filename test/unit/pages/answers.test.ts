import { describe, expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import type { Endpoint } from '../../../src/catalogue/endpoint.ts';
import { renderLanding } from '../../../src/pages/landing.ts';
import { createReadAnswer, type PageParts } from '../../../src/pages/page-parts.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const config = {
  publicOrigin: 'https://us.example',
  handlerTimeoutMs: 1000,
  network: { caip2: 'eip155:5042', usdc: `0x36${'0'.repeat(38)}`, explorerUrl: null },
  protocols: { mpp: false },
  web: { contactUrl: null },
  site: { sourceUrl: null, termsUrl: null },
};

function open(change: (endpoint: Endpoint<object>) => Partial<Endpoint<object>>) {
  const lines: object[] = [];
  const entries = catalogue.map((endpoint) => {
    const erased = endpoint as Endpoint<object>;
    return { ...erased, ...change(erased) };
  });
  const log = { warn: (fields: object) => void lines.push(fields) };
  return { lines, read: createReadAnswer({ config, catalogue: entries, sources: {}, log }) };
}

describe('an answer of a free route', () => {
  test('has all members that the landing page shows', async () => {
    const { read, lines } = open(({ example }) => ({ run: async () => example.result }));
    const rails = { gateway: null, exactFrom: 0n };
    const parts = { config: { ...config, rails }, read, catalogue, clock: createManualClock(0) };
    const page = await renderLanding({
      ...parts,
      charts: { feeSteps: () => [], probes: () => [] },
    } as unknown as PageParts);
    expect(lines).toEqual([]);
    expect(page).not.toMatch(/not known|undefined|NaN|\[object/);
    expect(page).toContain('<strong>20.13</strong> gwei');
    expect(page).toContain('Block 32250000. Next block 20.08 gwei. Over 24 hours 20 to 21.4 gwei.');
    expect(page).toContain('<strong>41.2</strong> ms');
    expect(page).toContain('24 of 24 runs passed in the last 24 hours.');
  });

  test('that fails is left out and logged, and so is one that breaks its schema', async () => {
    const fault = new Error('the source is gone');
    const { read, lines } = open(({ path }) => ({
      run: () => (path === '/rpc' ? Promise.reject(fault) : Promise.resolve({ surprise: true })),
    }));
    expect([await read('/rpc'), await read('/fees')]).toEqual([null, null]);
    expect(lines).toMatchObject([{ path: '/rpc', err: fault }, { path: '/fees' }]);
  });
});
