import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { defineEndpoint, type Endpoint } from '../../../src/catalogue/endpoint.ts';
import { selftest, selftestFail } from '../../../src/endpoints/selftest.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { countSelfTests, createSelfTest } from '../../../src/selftest/self-test.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { priceOf } from '../../support/prices.ts';
import { ownPort } from '../../support/service/own-port.ts';
import { type Answer, call, startService } from '../../support/service/service.ts';
import { balanceOf, newBuyer } from '../../support/usdc/buyer.ts';
import { newOutsider } from '../../support/usdc/outsider.ts';

let network: EmbeddedNetwork;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
});
afterAll(() => network.stop());

let folder: string;
const stops: (() => Promise<void>)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-selftest-'));
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
  rmSync(folder, { recursive: true });
});

interface Options {
  /** Of the wallet, in USDC base units. */
  readonly units?: bigint;
  readonly catalogue?: readonly Endpoint<Sources>[];
  /** Set when it differs from the address on which the service listens. */
  readonly publicOrigin?: string;
}

/** The service, with the self-test as the process would start it: over the same ledger, with its own wallet. */
async function serve({ units = 1_000_000n, publicOrigin, ...options }: Options = {}) {
  const wallet = await newBuyer(network, units);
  const env = { SELFTEST_PRIVATE_KEY: bytesToHex(wallet.privateKey) };
  const db = openTestLedger(join(folder, 'ledger.db'));
  const store = storesOf(db).selfTests;
  const sold = options.catalogue ?? catalogue;
  // The test gives the endpoint its data, so that it shows only this test's job and wallet.
  const shown = sold.map((endpoint) =>
    endpoint === selftest
      ? withResults(endpoint, { results: store, enabled: true, origin: 'http://127.0.0.1' })
      : endpoint,
  );
  const service = await startService(network, { dataDir: folder, catalogue: shown });
  stops.push(service.stop, async () => void db.close());
  const { clock, sources } = service.deps;
  const metrics = new Registry();
  const selfTest = await createSelfTest({
    config: {
      ...service.config,
      publicOrigin: publicOrigin ?? service.origin,
      selfTest: { privateKey: env.SELFTEST_PRIVATE_KEY, intervalMs: 60_000, path: '/v1/paid/rpc/health' },
    },
    chain: sources.chain,
    store,
    catalogue: sold,
    clock,
    log: service.deps.log,
    onRun: countSelfTests(metrics),
  });
  if (selfTest === null) throw new Error('there is a wallet');
  const run = async () => {
    await selfTest.run(new AbortController().signal);
    const [newest] = await store.recent(1);
    expect(await metrics.metrics()).toContain(`selftest_runs_total{ok="${newest?.ok}"} 1`);
    return newest;
  };
  return { service, store, wallet, selfTest, run };
}

function withResults(endpoint: Endpoint<Sources>, selfTests: Sources['selfTests']): Endpoint<Sources> {
  return {
    ...endpoint,
    run: (params, sources, signal) => endpoint.run(params, { ...sources, selfTests }, signal),
  };
}

const FAILED = { ok: false, notCharged: null };

describe('the self-test', () => {
  test('buys like any buyer, its transaction is on the chain, the failing call costs nothing, and the endpoint shows all of it', async () => {
    const { service, run, wallet } = await serve();
    const seller = await balanceOf(network, network.seller);
    const result = await run();
    expect(result).toMatchObject({ ok: true, notCharged: true, reason: null, latencyMs: expect.any(Number) });
    const transaction = bytesToHex(result?.transaction ?? Buffer.of());
    expect(await network.rpc('eth_getTransactionReceipt', [transaction])).toMatchObject({ status: '0x1' });
    // The failing call costs more than the other. If it had been charged, the sums would show it.
    expect(await balanceOf(network, wallet.address)).toBe(1_000_000n - priceOf('/rpc/health').units);
    expect((await balanceOf(network, network.seller)) - seller).toBe(priceOf('/rpc/health').units);

    const answer = await service.get('/v1/selftest');
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([
      200,
      {
        last: { ok: true, transaction, latencyMs: result?.latencyMs },
        lastNotCharged: { ok: true },
        last24h: { runs: 1, ok: 1 },
        recent: [{ notCharged: true }],
      },
    ]);
    // The gate treated it like any payer: one settled payment, and no row of the other.
    expect(await service.deps.payments.ledger.countByState()).toMatchObject({ settled: 1, reserved: 0, failed: 0 });
  });

  test('a service that sells what must fail is reported', async () => {
    const charging = defineEndpoint({
      path: selftestFail.path,
      access: 'paid',
      onlyOn: 'paid',
      priceUsd: '0.001',
      label: 'x',
      summary: 'x',
      notFor: null,
      tags: '',
      ofChain: false,
      params: z.object({}),
      result: z.strictObject({}),
      example: { params: {}, result: {} },
      run: async () => ({}),
    });
    const swapped = catalogue.map((endpoint) => (endpoint === selftestFail ? charging : endpoint));
    const { run, service } = await serve({ catalogue: swapped });
    const result = await run();
    expect(result).toMatchObject({ ok: false, notCharged: false, transaction: expect.any(Uint8Array) });
    expect(result?.reason).toBe('failing_call_used_its_payment');
    expect(JSON.parse((await service.get('/v1/selftest')).body)).toMatchObject({
      last: { ok: false },
      lastNotCharged: { ok: false },
      last24h: { runs: 1, ok: 0 },
    });
  });

  test('a payment that is taken in spite of an answer of 500 is reported', async () => {
    const outsider = await newOutsider(network);
    const port = await ownPort();
    const { run, service } = await serve({ publicOrigin: `http://127.0.0.1:${port}` });
    await startProxy(port, service.origin, async (path, header) => {
      if (path !== selftestFailPath) return;
      const { signature, authorization } = JSON.parse(Buffer.from(header, 'base64').toString('utf8')).payload;
      const bytes = ['from', 'to', 'nonce'].map((name) => [name, hexToBytes(authorization[name])]);
      const numbers = ['value', 'validAfter', 'validBefore'].map((name) => [name, BigInt(authorization[name])]);
      await outsider.submit({ ...Object.fromEntries([...bytes, ...numbers]), signature: hexToBytes(signature) });
    });
    expect(await run()).toMatchObject({ ok: false, notCharged: false, reason: 'failing_call_used_its_payment' });
  });

  test('a wallet without a balance fails the run, and buys again when it has one', async () => {
    const { run, wallet } = await serve({ units: 0n });
    expect(await run()).toMatchObject({ ...FAILED, transaction: null, reason: 'wallet_short_of_funds' });
    await network.fundUsdc(wallet.address, 10_000n);
    expect(await run()).toMatchObject({ ok: true });
  });

  test('a public URL that cannot be reached fails the run', async () => {
    const { run } = await serve({ publicOrigin: `http://127.0.0.1:${await ownPort()}` });
    expect(await run()).toMatchObject({
      ...FAILED,
      latencyMs: null,
      transaction: null,
      reason: 'purchase_unreachable',
    });
  });

  test('results survive a restart', async () => {
    const first = await serve();
    const result = await first.run();
    for (const stop of stops.splice(0).reverse()) await stop();
    const second = await serve();
    expect(await second.store.recent(2)).toEqual([result]);
    expect(JSON.parse((await second.service.get('/v1/selftest')).body)).toMatchObject({ last24h: { runs: 1, ok: 1 } });
  });

  test('a stop ends the current run, which does not count as a failure of the service', async () => {
    const { selfTest, store, service } = await serve({ publicOrigin: await startMute() });
    const stop = new AbortController();
    const running = selfTest.run(stop.signal);
    setTimeout(() => stop.abort(new Error('stopped')), 50);
    await running;
    expect(await store.recent(1)).toEqual([]);
    await selfTest.stop();
    expect(await service.deps.payments.ledger.countByState()).toMatchObject({ reserved: 0, settling: 0, unknown: 0 });
  });
});

test('there is no self-test without a wallet, and none of a route that is not for sale', async () => {
  const { service, store } = await serve();
  const make = (selfTest: object, seller = service.config.seller) =>
    createSelfTest({
      config: { ...service.config, seller, selfTest: { ...service.config.selfTest, ...selfTest } },
      chain: service.deps.sources.chain,
      store,
      catalogue,
      clock: systemClock,
      log: service.deps.log,
    });
  expect(await make({})).toBeNull();
  const { privateKey } = network.selfTester;
  expect(await make({ privateKey, path: '/v1/paid/arc/wallet?address=0x1' })).not.toBeNull();
  const unsold = make({ privateKey, path: '/v1/paid/market/prices' });
  await expect(unsold).rejects.toThrow(/cannot buy \/v1\/paid\/market\/prices/);
  await expect(make({ privateKey }, network.selfTester.address)).rejects.toThrow(/wallet is the seller’s/);
});

test('the embedded network gives a self-test wallet only when asked', async () => {
  expect(embeddedEnvironment(network)).not.toHaveProperty('SELFTEST_PRIVATE_KEY');
  const given = embeddedEnvironment(network, { selfTest: true });
  expect(given).toMatchObject({ SELFTEST_PRIVATE_KEY: network.selfTester.privateKey, SELFTEST_INTERVAL_SECONDS: '60' });
  expect(await balanceOf(network, network.selfTester.address)).toBe(10_000_000n);
});

const selftestFailPath = '/v1/paid/selftest/fail';

/** A public address before the service, whose operator reads the traffic. */
async function startProxy(port: number, origin: string, keeper: (path: string, header: string) => Promise<void>) {
  const server = createServer(async (request, response) => {
    const path = request.url ?? '';
    const header = request.headers['payment-signature'];
    const answer: Answer = await call(origin, path, {
      headers: header === undefined ? {} : { 'payment-signature': String(header) },
    });
    if (header !== undefined) await keeper(path, String(header));
    response.writeHead(answer.status, answer.headers).end(answer.body);
  });
  await listen(server, port);
}

/** An address that accepts requests and never answers. */
async function startMute(): Promise<string> {
  const server = createServer(() => undefined);
  await listen(server, 0);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function listen(server: ReturnType<typeof createServer>, port: number): Promise<void> {
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  stops.push(async () => {
    server.closeAllConnections();
    server.close();
  });
}
