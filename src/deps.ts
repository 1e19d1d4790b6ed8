import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { FastifyInstance, RouteOptions } from 'fastify';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { catalogue as everything } from './catalogue/catalogue.ts';
import type { Endpoint } from './catalogue/endpoint.ts';
import { createChainClient } from './chain/client.ts';
import type { Config } from './config.ts';
import type { Sources } from './endpoints/sources.ts';
import { createMetrics } from './http/metrics.ts';
import { systemClock } from './lib/clock.ts';
import { createGate } from './payment/gate.ts';
import { createPayments } from './payment/payments.ts';
import { checkGates, mountPaid } from './routes/paid.ts';
import { openLedgerDatabase } from './store/database.ts';
import { holdLedger } from './store/ledger-lock.ts';
import { createLedgerStore } from './store/ledger-store.ts';

/** Chooses the real parts and wires them; nothing else in the service decides what is real. */
export async function createDeps(config: Config, log: Logger, catalogue: readonly Endpoint<Sources>[] = everything) {
  const clock = systemClock;
  const { network, seller } = config;
  const lock = holdLedger(join(config.dataDir, 'ledger.lock'));
  const chain = createChainClient({
    rpcUrls: network.rpcUrls,
    chainId: network.chainId,
    timeoutMs: config.rpcTimeoutMs,
    log,
  });
  const store = createLedgerStore(openLedgerDatabase(join(config.dataDir, 'ledger.db')));
  const sources: Sources = { chain, clock, usdc: network.usdc, projectToken: config.projectToken };
  const bootId = randomUUID();
  const payments = createPayments<Sources>({ config, chain, store, sources, clock, bootId, log });
  const terms = { network: network.caip2, usdc: network.usdc, payTo: seller, publicOrigin: config.publicOrigin };
  const gate = createGate<Sources>(terms, payments.purchase);
  const metrics: Registry = createMetrics();
  await payments.start();

  return {
    config,
    clock,
    log,
    sources,
    catalogue,
    metrics,
    payments,
    mountPaid: (app: FastifyInstance) => mountPaid(app, gate, catalogue, network.segment),
    checkGates: (routes: readonly RouteOptions[]) => checkGates(gate, routes, catalogue, network.segment),
    /** Whether paid calls can be served now, and why not. */
    readiness: async () => {
      const checks = await payments.readiness();
      return { ready: Object.values(checks).every(({ ok }) => ok), checks };
    },
    close: async () => {
      await payments.stop();
      await store.close();
      lock.release();
      await chain.close();
    },
  };
}
