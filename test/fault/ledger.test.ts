import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { loadConfig } from '../../src/config.ts';
import type { Sources } from '../../src/endpoints/sources.ts';
import { AppError } from '../../src/errors.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { PaymentRefused } from '../../src/payment/refusal.ts';
import { createPayments } from '../../src/wiring/payments.ts';
import { createOffer, termsOf } from '../../src/wiring/surfaces.ts';
import { openClient } from '../support/chain/client.ts';
import { openTestLedger, storesOf } from '../support/ledger/fresh-ledger.ts';
import { runningWith, sellFor, usdcCallOf } from '../support/payment/call.ts';
import { latchedEndpoint } from '../support/service/latch.ts';
import { balanceOf } from '../support/usdc/buyer.ts';
import { headerOf, newKey, payloadOf, signAuthorization } from '../support/usdc/payments.ts';
import { createTestOutgoing } from '../support/usdc/test-outgoing.ts';

let network: EmbeddedNetwork;
let folder: string;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  folder = mkdtempSync(join(tmpdir(), 'percall-ledger-'));
});
afterAll(async () => {
  await network.stop();
  rmSync(folder, { recursive: true, force: true });
});

type Method = 'release' | 'get' | 'move';

/**
 * The real rail over the real store. Each named method fails once on demand, as on a disk that cannot be read for a moment.
 * With `after`, the first of them does its work and then fails, as when the answer to a commit is lost.
 */
async function railThatFailsIn(methods: readonly Method[], { after = false } = {}) {
  const env = {
    ...embeddedEnvironment(network),
    SETTLE_WAIT_MS: '30000',
    RECONCILE_INTERVAL_MS: '500',
    DATA_DIR: folder,
  };
  const config = loadConfig(env);
  const { chainId, rpcUrls } = config.network;
  const chain = openClient({ rpcUrls, chainId, timeoutMs: 30_000 });
  const db = openTestLedger(join(mkdtempSync(join(folder, 'rail-')), 'ledger.db'));
  const store = storesOf(db).payments;
  const failing = new Set<Method>();
  const failOnce =
    (method: Method) =>
    async (...args: unknown[]): Promise<unknown> => {
      const act = store[method] as (...args: unknown[]) => Promise<unknown>;
      if (!failing.delete(method)) return act(...args);
      if (after && method === methods[0]) await act(...args);
      throw new Error('disk I/O error');
    };
  const faulty = { ...store, ...Object.fromEntries(methods.map((method) => [method, failOnce(method)])) };
  const log = pino({ level: 'silent' });
  const sources = {} as Sources;
  const { books: _books, ...stores } = storesOf(db);
  const payments = createPayments({
    ...stores,
    config,
    chain,
    store: faulty,
    outgoing: createTestOutgoing(),
    clock: systemClock,
    bootId: 'b',
    log,
  });
  await payments.start();
  const latch = latchedEndpoint();
  const terms = { ...termsOf(config), publicOrigin: 'http://here' };
  const { requirement } = createOffer(latch.endpoint, terms);
  const buyer = newKey();
  const header = headerOf(payloadOf(signAuthorization(buyer.privateKey, requirement), requirement));
  return {
    buyer,
    price: BigInt(requirement.amount),
    fail: () => {
      for (const method of methods) failing.add(method);
    },
    counts: payments.ledger.countByState,
    /** Presents the payment and returns its outcome as one word. */
    present: async (): Promise<string> => {
      try {
        const call = usdcCallOf(latch.endpoint, requirement, { running: runningWith(sources) });
        await sellFor(payments.railFor, call, header);
        return 'served';
      } catch (error) {
        if (error instanceof PaymentRefused) return `402 ${error.reason}`;
        return error instanceof AppError ? `${error.status} ${error.code}` : String(error);
      }
    },
    stop: async () => {
      await payments.stop();
      await store.close();
      await chain.close();
    },
  };
}

async function untilServed(present: () => Promise<string>): Promise<string> {
  let last = '';
  for (let tries = 0; tries < 200 && last !== 'served'; tries++) {
    last = await present();
    if (last !== 'served') await new Promise((next) => setTimeout(next, 300));
  }
  return last;
}

test('a reservation that could not be released does not hide the reason, and is released later', async () => {
  const rail = await railThatFailsIn(['release']);
  rail.fail();
  expect(await rail.present()).toBe('402 invalid_exact_evm_insufficient_balance');
  await network.fundUsdc(rail.buyer.address, 10_000n);
  expect(await untilServed(rail.present)).toBe('served');
  await rail.stop();
});

test.each(['get', 'move'] as const)('a store that fails once in %s never leaves a payment open', async (method) => {
  const rail = await railThatFailsIn([method]);
  await network.fundUsdc(rail.buyer.address, 10_000n);
  rail.fail();
  expect(['served', '503 settlement_unknown', 'Error: disk I/O error']).toContain(await rail.present());
  expect(await untilServed(rail.present)).toBe('served');
  await rail.stop();
});

test('an intent whose commit’s answer was lost is withdrawn: the call costs nothing and the authorization buys again', async () => {
  const rail = await railThatFailsIn(['move'], { after: true });
  await network.fundUsdc(rail.buyer.address, 10_000n);
  rail.fail();
  expect(await rail.present()).toBe('Error: disk I/O error');
  expect(await rail.counts()).toMatchObject({ reserved: 0, settling: 0, unknown: 0, settled: 0 });
  expect(await balanceOf(network, rail.buyer.address)).toBe(10_000n);
  expect(await rail.present()).toBe('served');
  expect(await balanceOf(network, rail.buyer.address)).toBe(10_000n - rail.price);
  await rail.stop();
});

test('an intent that cannot be withdrawn either is reported as unknown, and the same payment gets the answer', async () => {
  const rail = await railThatFailsIn(['move', 'release'], { after: true });
  await network.fundUsdc(rail.buyer.address, 10_000n);
  rail.fail();
  expect(await rail.present()).toBe('503 settlement_unknown');
  expect(await untilServed(rail.present)).toBe('served');
  expect(await balanceOf(network, rail.buyer.address)).toBe(10_000n - rail.price);
  await rail.stop();
});
