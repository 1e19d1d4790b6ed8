import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { FastifyInstance, RouteOptions } from 'fastify';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { catalogue as everything } from './catalogue/catalogue.ts';
import type { Endpoint } from './catalogue/endpoint.ts';
import { createChainClient } from './chain/client.ts';
import { publishCollector } from './collector/collector-metrics.ts';
import { openCollector } from './collector/open-collector.ts';
import { createProbe, nameEndpoints } from './collector/probe.ts';
import type { Config } from './config.ts';
import type { Sources } from './endpoints/sources.ts';
import { createFacilitator } from './facilitator/facilitator.ts';
import { createMetrics } from './http/metrics.ts';
import { type Clock, systemClock } from './lib/clock.ts';
import { createGate } from './payment/gate.ts';
import { createLightningDescriptor } from './payment/lightning/descriptor.ts';
import { createLightning } from './payment/lightning/lightning.ts';
import { LIGHTNING_NETWORKS } from './payment/lightning/networks.ts';
import { createLookup } from './payment/lookup.ts';
import { createPaymentMetrics } from './payment/payment-metrics.ts';
import { createPayments } from './payment/payments.ts';
import { checkLightningGates, mountLightning } from './routes/lightning.ts';
import { checkGates, mountPaid } from './routes/paid.ts';
import { openChainDatabase } from './store/chain-database.ts';
import { createChainReads } from './store/chain-reads.ts';
import { NO_COLLECTOR } from './store/collector-status.ts';
import { openLedgerDatabase } from './store/database.ts';
import { holdLedger } from './store/ledger-lock.ts';
import { createLedgerStore } from './store/ledger-store.ts';
import { createLightningStore } from './store/lightning-store.ts';
import { createProbeWrites, type ProbeWrites } from './store/probe-store.ts';
import { createNamesSources } from './upstream/names-sources.ts';
import { createOutgoing } from './upstream/outgoing.ts';
import { createPackageSources } from './upstream/packages-sources.ts';

/** Chooses the real parts and wires them; nothing else in the service decides what is real. */
export async function createDeps(
  config: Config,
  log: Logger,
  catalogue: readonly Endpoint<Sources>[] = everything,
  clock: Clock = systemClock,
) {
  const { network, seller } = config;
  const lock = holdLedger(join(config.dataDir, 'ledger.lock'));
  const chain = createChainClient({
    rpcUrls: network.rpcUrls,
    chainId: network.chainId,
    genesisHash: config.collector.genesisHash ?? undefined,
    timeoutMs: config.rpcTimeoutMs,
    log,
  });
  const chainDb = openChainDatabase(join(config.dataDir, 'chain.db'));
  const watch = { ...config.watch, usdc: network.usdc };
  const collector = openCollector({ chain, db: chainDb, clock, log, settings: config.collector, watch });
  const reads = createChainReads(chainDb);
  const endpoints = nameEndpoints(network.rpcUrls);
  const probe = config.collector.enabled ? openProbe(config, createProbeWrites(chainDb), log) : null;
  const ledgerDb = openLedgerDatabase(join(config.dataDir, 'ledger.db'));
  const store = createLedgerStore(ledgerDb);
  const metrics: Registry = createMetrics();
  const watched = createPaymentMetrics(metrics, { store, clock, storeBytes: config.replies.storeBytes });
  const lightningStore = watched.watchClaims(createLightningStore(ledgerDb));
  const outgoing = createOutgoing({ web: config.web, publicOrigin: config.publicOrigin, clock, log });
  const sources: Sources = {
    chain,
    clock,
    collector: collector ?? NO_COLLECTOR,
    reads,
    collected: {
      watched: config.watch.tokens,
      endpoints,
      health: config.collected.health,
      floorWei: config.collected.floorWei,
      hasDistributor: config.watch.distributor !== null,
    },
    usdc: network.usdc,
    projectToken: config.projectToken,
    usyc: config.markets.usyc,
    web: outgoing.web,
    packages: createPackageSources(outgoing.upstreams, config.packages),
    ...createNamesSources(outgoing.upstreams, config.names, clock),
  };
  const bootId = randomUUID();
  const payments = createPayments<Sources>({
    config,
    chain,
    store,
    sources,
    clock,
    bootId,
    onMove: watched.onMove,
    log,
  });
  const terms = { network: network.caip2, usdc: network.usdc, payTo: seller, publicOrigin: config.publicOrigin };
  const gate = createGate<Sources>(terms, payments.purchase);
  const { upstreams } = outgoing;
  const lightning = createLightning({ config, store: lightningStore, upstreams, sources, clock, bootId, log });
  const { payTo, network: lightningNetwork, rates } = lightning;
  const facilitator = createFacilitator({
    store: lightningStore,
    clock,
    config: config.facilitator,
    publicOrigin: config.publicOrigin,
    ownPayTo: payTo,
    log,
  });
  publishCollector(metrics, { collector: sources.collector, reads, endpoints, clock });
  await payments.start();
  await lightning.start();
  collector?.start();
  probe?.start();

  return {
    config,
    clock,
    log,
    sources,
    catalogue,
    metrics,
    payments,
    lightningStore,
    facilitator,
    describeLightning: createLightningDescriptor({ catalogue, network: lightningNetwork, payTo, rates, clock }),
    lookup: createLookup({
      payments: store,
      claims: lightningStore,
      lightningNetworks: LIGHTNING_NETWORKS.map(({ id }) => id),
      explorerUrl: network.explorerUrl,
    }),
    mountPriced: (app: FastifyInstance) => {
      mountPaid(app, gate, catalogue, network.segment);
      mountLightning(app, lightning.gate, catalogue, network.segment);
    },
    checkGates: (routes: readonly RouteOptions[]) => {
      checkGates(gate, routes, catalogue, network.segment);
      checkLightningGates(lightning.gate, routes, catalogue, network.segment);
    },
    /** Whether paid calls can be served now, and why not. */
    readiness: async () => {
      const checks = await payments.readiness();
      const ready = Object.values(checks).every(({ ok }) => ok);
      // Only told: paid calls are served from the live chain too, and /v1/health is where a lagging collector counts.
      const { collected, backfill } = sources.collector.status();
      const rail = { ...lightning.status(), ok: true };
      return {
        ready,
        checks: { ...checks, lightning: rail, collector: { ok: true, collected: collected?.number ?? null, backfill } },
      };
    },
    close: async () => {
      await payments.stop();
      await lightning.stop();
      await collector?.stop();
      await probe?.stop();
      chainDb.close();
      await outgoing.close();
      await store.close();
      lock.release();
      await chain.close();
    },
  };
}

function openProbe({ network, collected, rpcTimeoutMs }: Config, writes: ProbeWrites, log: Logger) {
  const { rpcUrls, chainId } = network;
  const intervalMs = collected.probeIntervalMs;
  return createProbe({ rpcUrls, chainId, writes, intervalMs, timeoutMs: rpcTimeoutMs, clock: systemClock, log });
}
