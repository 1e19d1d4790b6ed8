import { join } from 'node:path';
import type { FastifyInstance, RouteOptions } from 'fastify';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import { catalogue as everything } from './catalogue/catalogue.ts';
import type { Endpoint } from './catalogue/endpoint.ts';
import { createChainClient } from './chain/client.ts';
import { type Part, WHOLE } from './cluster/part.ts';
import type { PrimaryLink } from './cluster/primary-link.ts';
import { publishCollector } from './collector/collector-metrics.ts';
import { openCollector } from './collector/open-collector.ts';
import { createProbe, nameEndpoints } from './collector/probe.ts';
import type { Config } from './config.ts';
import type { Sources } from './endpoints/sources.ts';
import { createFacilitator } from './facilitator/facilitator.ts';
import { createMetrics } from './http/metrics.ts';
import { type Clock, systemClock } from './lib/clock.ts';
import { openListings } from './listings.ts';
import { mountMcp } from './mcp/mount.ts';
import { openLedger } from './open-ledger.ts';
import { createGate } from './payment/gate.ts';
import { createLightningDescriptor } from './payment/lightning/descriptor.ts';
import { createLightning } from './payment/lightning/lightning.ts';
import { LIGHTNING_NETWORKS } from './payment/lightning/networks.ts';
import { createLookup } from './payment/lookup.ts';
import { createPaymentMetrics } from './payment/payment-metrics.ts';
import { createPayments } from './payment/payments.ts';
import { termsOf } from './payment/requirements.ts';
import { createRelayerMetrics } from './payment/usdc/relayer-metrics.ts';
import { checkLightningGates, mountLightning } from './routes/lightning.ts';
import { mountPages } from './routes/pages.ts';
import { checkGates, mountPaid } from './routes/paid.ts';
import { createSelfTest } from './selftest/self-test.ts';
import { countSelfTests } from './selftest/self-test-metrics.ts';
import { openChainCopy } from './store/chain-copy.ts';
import { openChainDatabase, openChainReader } from './store/chain-database.ts';
import { type ChainReads, createChainReads } from './store/chain-reads.ts';
import { NO_COLLECTOR } from './store/collector-status.ts';
import { createFeeSteps } from './store/fee-steps.ts';
import { holdLedger, joinLedger } from './store/ledger-lock.ts';
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
  part: Part = WHOLE,
) {
  const { network } = config;
  const file = (name: string) => join(config.dataDir, name);
  const worker = part.kind === 'worker' ? part : null;
  const lock = worker ? joinLedger(file('ledger.lock')) : holdLedger(file('ledger.lock'));
  const chain = createChainClient({
    rpcUrls: network.rpcUrls,
    chainId: network.chainId,
    genesisHash: config.collector.genesisHash ?? undefined,
    timeoutMs: config.rpcTimeoutMs,
    log,
  });
  const data = openChainData(config, file('chain.db'), worker?.link ?? null, log);
  const { db: chainDb, reads } = data;
  const watch = { ...config.watch, usdc: network.usdc };
  const settings = config.collector;
  const collector = worker || !chainDb ? null : openCollector({ chain, db: chainDb, clock, log, settings, watch });
  const endpoints = nameEndpoints(network.rpcUrls);
  const probe = chainDb && settings.enabled && !worker ? openProbe(config, createProbeWrites(chainDb), log) : null;
  const metrics = createMetrics();
  const ledger = await openLedger(config, part, clock, log, metrics);
  const { stores, bootId, instance } = ledger;
  const { payments: store, selfTests, spending, transfers } = stores;
  // What is read from shared files is told by one process.
  const shared = worker ? new Registry() : metrics;
  const watched = createPaymentMetrics(metrics, { store, clock, storeBytes: config.replies.storeBytes, shared });
  const lightningStore = watched.watchClaims(stores.lightning);
  const outgoing = createOutgoing({ web: config.web, publicOrigin: config.publicOrigin, clock, log });
  const sources: Sources = {
    chain,
    clock,
    collector: data.collector ?? worker?.link.collector ?? collector ?? NO_COLLECTOR,
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
    selfTests: { results: selfTests, enabled: config.selfTest.privateKey !== null, origin: config.publicOrigin },
    web: outgoing.web,
    packages: createPackageSources(outgoing.upstreams, config.packages),
    ...createNamesSources(outgoing.upstreams, config.names, clock),
  };
  const payments = createPayments<Sources>({
    config,
    chain,
    store,
    sources,
    clock,
    bootId,
    onMove: watched.onMove,
    spending,
    transfers,
    outgoing,
    ...(!worker && { relayerMetrics: createRelayerMetrics(metrics) }),
    ...(worker && { settling: worker.link.settling, onLeft: watched.onLeft }),
    ...(instance && { ...instance, onLeft: watched.onLeft }),
    ...(part.kind === 'primary' && { living: part.living }),
    log,
  });
  const terms = termsOf(config);
  const gate = createGate<Sources>(terms, payments.purchase);
  const { upstreams } = outgoing;
  const lightning = createLightning({
    ...{ config, store: lightningStore, upstreams, sources, clock, bootId, log },
    sells: part.kind !== 'primary',
    keepsHouse: ledger.leads,
    isAlone: !worker && !instance,
    windows: ledger.windows,
  });
  const { payTo, network: lightningNetwork, rates } = lightning;
  const facilitator = createFacilitator({
    store: lightningStore,
    clock,
    config: config.facilitator,
    windows: ledger.windows,
    publicOrigin: config.publicOrigin,
    ownPayTo: payTo,
    log,
  });
  worker?.link.joinMetrics(metrics);
  publishCollector(shared, { collector: sources.collector, reads, endpoints, clock });
  const selfTest = worker
    ? null
    : createSelfTest({
        ...{ config, chain, store: selfTests, catalogue, clock, log, mayRun: ledger.leads },
        onRun: countSelfTests(metrics),
      });
  /** Whether paid calls can be served now, and why not. */
  const readiness = async () => {
    const checks = { ...(await payments.readiness()), ...(worker && { primary: worker.link.status() }) };
    const ready = Object.values(checks).every(({ ok }) => ok);
    // Only told: paid calls are served from the live chain too, and /v1/health is where a lagging collector counts.
    const { collected, backfill } = sources.collector.status();
    const rail = { ...lightning.status(), ok: true };
    const standing = instance && { leads: ledger.leads(), living: instance.living().length };
    return {
      ready,
      checks: {
        ...checks,
        ...(standing && { instances: { ok: true, ...standing } }),
        lightning: rail,
        collector: { ok: true, collected: collected?.number ?? null, backfill },
      },
    };
  };
  const isReady = async () => (await readiness()).ready;
  const listings = openListings({ config, stores, outgoing, catalogue, leads: ledger.leads, isReady, clock, log });
  await payments.start();
  await instance?.join(payments, lightningStore.releaseLeasesOf);
  await lightning.start();
  await listings.start();
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
      transfers,
      claims: lightningStore,
      lightningNetworks: LIGHTNING_NETWORKS.map(({ id }) => id),
      explorerUrl: network.explorerUrl,
    }),
    mountPriced: (app: FastifyInstance) => {
      mountPaid(app, gate, catalogue, network.segment);
      mountLightning(app, lightning.gate, catalogue, network.segment);
    },
    mountPages: (app: FastifyInstance) =>
      mountPages(app, {
        ...{ config, catalogue, sources, clock, log, readiness, facilitator },
        discovery: listings.discovery,
        market: listings.market,
        lightning: lightning.status,
        charts: { feeSteps: data.feeSteps, probes: reads.probes },
        settled: stores.settled,
      }),
    mountTools: (app: FastifyInstance) =>
      mountMcp(app, {
        ...{ catalogue, clock, log, sources, terms },
        handlerTimeoutMs: config.handlerTimeoutMs,
        purchase: payments.purchase,
        lightning: { offers: lightning.offers, redeem: lightning.redeem, network: lightningNetwork.id },
        search: listings.discovery,
        limits: {
          free: { perMinute: config.rateLimits.free, windows: ledger.nearWindows('mcp-free') },
          priced: { perMinute: config.rateLimits.priced, windows: ledger.nearWindows('mcp-priced') },
        },
      }),
    checkGates: (routes: readonly RouteOptions[]) => {
      checkGates(gate, routes, catalogue, network.segment);
      checkLightningGates(lightning.gate, routes, catalogue, network.segment);
    },
    readiness,
    market: listings.market,
    discovery: listings.discovery,
    selfTest,
    close: async () => {
      await selfTest?.stop();
      await listings.stop();
      await instance?.membership.stop();
      await payments.stop();
      await lightning.stop();
      await collector?.stop();
      await probe?.stop();
      data.close();
      await outgoing.close();
      await ledger.close();
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

/** Where collected data is read: in a copy that is followed, or in our own database, which one process writes to. */
function openChainData(
  { collector, network: { chainId } }: Config,
  file: string,
  link: PrimaryLink | null,
  log: Logger,
) {
  const { copyFile, backfillHours } = collector;
  if (copyFile !== null) return { db: null, ...openChainCopy({ file: copyFile, chainId, backfillHours, log }) };
  const db = link ? openChainReader(file) : openChainDatabase(file);
  const reads = link ? followReads(createChainReads(db, 'elsewhere'), link) : createChainReads(db);
  return { db, reads, collector: null, ...createFeeSteps(db), close: () => void db.close() };
}

/** What another process collects: looked at anew when that one has told how far it is, so that data and freshness move together. */
function followReads(reads: ChainReads, link: PrimaryLink): ChainReads {
  let version = reads.version();
  link.onBeat(() => {
    version = reads.version();
  });
  return { ...reads, version: () => version };
}
