import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { loadConfig } from '../../../src/config.ts';
import { daysBefore, systemClock, utcDay } from '../../../src/lib/clock.ts';
import type { RelayerSpendingStore } from '../../../src/store/ports/stores.ts';
import { openCatalogue } from '../../../src/wiring/catalogue.ts';
import { lossesOf, warnOfLosses } from '../../../src/wiring/rails.ts';
import { createDeps } from '../../../src/wiring/service.ts';
import { openClient } from '../../support/chain/client.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { usdcRoutes } from '../../support/prices.ts';

const GWEI = 10n ** 9n;
const PRODUCTION = { NODE_ENV: 'production', PUBLIC_ORIGIN: 'http://127.0.0.1:4021' };
const CHANNELS = { CHANNELS: 'on', CHANNELS_AUTHORIZER_KEY: `0x${'ef'.repeat(32)}` };

let network: EmbeddedNetwork;
let folder: string;
let spending: RelayerSpendingStore;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
});
afterAll(() => network.stop());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-losses-'));
  const db = openTestLedger(join(folder, 'ledger.db'));
  spending = storesOf(db).spending;
  onTestFinished(() => {
    db.close();
    rmSync(folder, { recursive: true });
  });
});

const configOf = (env: Record<string, string>) =>
  loadConfig({ ...embeddedEnvironment(network), ...PRODUCTION, DATA_DIR: folder, ...env });

/** What the start reads, with real parts; the chain answers as the embedded node does, unless another is named. */
function partsOf(env: Record<string, string> = {}, rpcUrl = network.rpcUrl) {
  const config = configOf(env);
  const { catalogue } = openCatalogue(config);
  const chain = openClient({ rpcUrls: [rpcUrl], chainId: config.network.chainId, timeoutMs: 10_000 });
  onTestFinished(() => chain.close());
  return { config, catalogue: catalogue as never, spending, chain, clock: systemClock };
}

/** Notes what the relayer spent. `gas` of so many payments, at so many gwei. */
async function spend(daysAgo: number, gas: bigint, payments: number, gwei: bigint): Promise<void> {
  const day = daysBefore(utcDay(systemClock.nowMs()), daysAgo);
  await spending.add(day, { wei: gas * gwei * GWEI, failedWei: 0n, gas, transactions: 1, payments });
}

/** The routes that cost less than so many base units, as they are printed. */
const below = (units: bigint) =>
  usdcRoutes()
    .filter(({ price }) => price.units < units)
    .map(({ path, price }) => `${path.slice(1)} ${price.usd}`);

describe('the routes that sell below the gas of their payment', () => {
  test('are found by the current base fee while nothing was spent: a lone payment at 20.1 gwei', async () => {
    const [exact, ...others] = await lossesOf(partsOf());
    expect(others).toEqual([]);
    // 112,519 gas at 20 gwei and a tip of 0.1.
    expect(exact).toMatchObject({ rail: 'usdc-exact', costUsdc: '0.002262', basis: 'the current base fee' });
    expect([...(exact?.routes ?? [])].sort()).toEqual(below(2262n).sort());
  });

  test('are found by the gas of the last day: what a payment took, at the price that was paid', async () => {
    await spend(2, 1_000_000n, 1, 900n);
    await spend(1, 60_000n, 1, 10n);
    await spend(0, 40_000n, 1, 10n);
    // 50,000 gas at 10 gwei: exactly the lowest price, so nothing is lost.
    const lowest = { PRICES: 'fees/estimate=0.0005,rpc/health=0.0005' };
    expect(await lossesOf(partsOf(lowest, 'http://127.0.0.1:1'))).toEqual([]);
    await spend(0, 20_000n, 0, 10n);
    expect(await lossesOf(partsOf(lowest))).toEqual([
      {
        rail: 'usdc-exact',
        costUsdc: '0.0006',
        basis: 'the gas of the last day',
        routes: ['fees/estimate 0.0005', 'rpc/health 0.0005'],
      },
    ]);
  });

  test('are none where a facilitator pays the gas, where the plain rail sells nothing below it, or at higher prices', async () => {
    const facilitator = { SETTLER: 'facilitator', REMOTE_FACILITATOR_URL: 'http://127.0.0.1:1' };
    expect(await lossesOf(partsOf(facilitator))).toEqual([]);
    expect(await lossesOf(partsOf({ ...CHANNELS, EXACT: 'off' }))).toEqual([]);
    expect(await lossesOf(partsOf({ ...CHANNELS, EXACT_FROM_USD: '0.0025' }))).toEqual([]);
    const { routes = [] } = (await lossesOf(partsOf({ PRICES: 'rpc/health=0.01', ROUTES_OFF: 'web/check' })))[0] ?? {};
    const others = below(2262n).filter((line) => !/^(rpc\/health|web\/check) /.test(line));
    expect([...routes].sort()).toEqual(others.sort());
  });

  test('are named for channels too, whose claims make the measured gas that of no single payment', async () => {
    await spend(0, 1_000_000n, 1, 20n);
    const found = await lossesOf(partsOf({ ...CHANNELS, PRICES: 'rpc/health=0.0001' }));
    expect(found.map(({ rail, costUsdc }) => [rail, costUsdc])).toEqual([
      ['usdc-exact', '0.002251'],
      ['usdc-channels', '0.000114'],
    ]);
    expect(found[1]?.routes).toEqual(['rpc/health 0.0001']);
  });
});

describe('the start', () => {
  test('prints them in production, with the keys that change it', async () => {
    let tell: (line: Record<string, unknown>) => void;
    const printed = new Promise<Record<string, unknown>>((done) => {
      tell = done;
    });
    const lines = {
      write: (text: string) => {
        const line = JSON.parse(text);
        if (line.routes) tell(line);
      },
    };
    const deps = await createDeps(configOf({ COLLECTOR: 'off' }), pino({ level: 'info' }, lines));
    onTestFinished(deps.close);
    const { level, rail, routes, msg } = await printed;
    expect([level, rail]).toEqual([40, 'usdc-exact']);
    expect(routes).toHaveLength(below(2262n).length);
    for (const key of ['PRICES', 'ROUTES_OFF', 'EXACT_FROM_USD', 'CHANNELS=on']) expect(msg).toContain(key);
  });

  test('prints nothing elsewhere, and says so where the price of gas is not known', async () => {
    const warned: string[] = [];
    const log = { warn: (_: object, message: string) => void warned.push(message) };
    await warnOfLosses({ ...partsOf({ NODE_ENV: 'development' }), log });
    expect(warned).toEqual([]);
    await warnOfLosses({ ...partsOf({}, 'http://127.0.0.1:1'), log });
    expect(warned).toEqual([expect.stringContaining('the price of gas is not known')]);
    await warnOfLosses({ ...partsOf(), log });
    expect(warned).toHaveLength(2);
  });
});
