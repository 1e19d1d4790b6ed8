import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { AllSources } from '../catalogue/catalogue.ts';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { ranked } from '../chain/rpc/client.ts';
import type { Rank } from '../chain/rpc/wire.ts';
import { publishCollector } from '../collector/metrics.ts';
import { type Config, ConfigError } from '../config.ts';
import { createFacilitator } from '../facilitator/facilitator.ts';
import { createMetrics } from '../http/metrics.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { createBookMetrics } from '../payment/books.ts';
import type { Running } from '../payment/checkout.ts';
import { createRefusalCounts } from '../payment/history.ts';
import { LIGHTNING_NETWORKS } from '../payment/lightning/terms.ts';
import { createPaymentMetrics, publishMaintenance } from '../payment/metrics.ts';
import { createLookup } from '../payment/receipt.ts';
import { createRelayerMetrics } from '../payment/relayer/gas.ts';
import { countSelfTests, createSelfTest } from '../selftest/self-test.ts';
import { holdLedger } from '../store/ledger-lock.ts';
import type { BookStore } from '../store/ports/books.ts';
import { closeFolder } from '../store/private-folder.ts';
import { publishSources } from '../upstream/client/client.ts';
import { listedEntries, openCatalogue, openListings } from './catalogue.ts';
import { openChain, openCollecting } from './chain.ts';
import { createClockWatch } from './clock-watch.ts';
import { type OpenLedger, openLedger } from './ledger.ts';
import { openLightning } from './lightning.ts';
import { createPayments } from './payments.ts';
import { RAILS, type RailList, railNames, warnOfLosses } from './rails.ts';
import { createReadiness, createSurfaces } from './routes.ts';
import { createOutgoing, openSources } from './sources.ts';
import { mppProtocol, offersUnder, openChallenges } from './surfaces.ts';

/**
 * Makes every part of the service, and starts what runs by itself: the catalogue, the ground, the shop, then what
 * routes, pages and tools are given. Throws ConfigError when the configuration does not fit `declared`, the catalogue.
 */
export async function createDeps(
  config: Config,
  log: Logger,
  declared?: readonly Endpoint<AllSources>[],
  clock: Clock = systemClock,
  railList: RailList = RAILS,
) {
  const { catalogue, off } = openCatalogue(config, declared, railList);
  const ground = await openGround(config, log, clock);
  const { chain, collecting, metrics, ledger, outgoing, sources } = ground;
  const { stores, instance } = ledger;
  const listed = listedEntries(catalogue, sources);
  // Free routes read the chain with the lowest rank.
  const freeSources = readingAs('free', sources);
  const shop = await openShop(ground, railList);
  const { payments, lightningStore, facilitator } = shop;
  publishCollector(metrics, clock, collecting.collector, collecting.reads, collecting.endpoints);
  const onRun = countSelfTests(metrics);
  const { selfTests: store } = stores;
  const selfTest = await createSelfTest({ ...ground, catalogue, store, mayRun: ledger.leads, onRun });
  const clockWatch = createClockWatch(ground, freeSources.chain, instance?.nowMs ?? null);
  const others = { lightning: shop.lightning.status };
  const readiness = createReadiness({ payments, others, ...sources, ledger, clock, clockWatch });
  const listings = openListings({ config, outgoing, catalogue: listed, ledger, readiness, clock, log });
  const offerOf = offersUnder(config, { railList, probes: payments.probes });
  const { feeSteps } = collecting;
  const refusals = createRefusalCounts(stores.refusals, clock, log);
  const offered = { refusals, catalogue, listed, off, offerOf, railFor: payments.railFor, feeSteps };
  const surfaces = createSurfaces({ ...ground, ...shop, ...offered, sources: freeSources, listings, readiness });
  await chain.watch(stores.providers);
  void warnOfLosses({ config, catalogue, railList, spending: stores.spending, chain, clock, log });
  await payments.start();
  await shop.lightning.start();
  await listings.start();
  collecting.start();
  clockWatch.start();
  refusals.start();

  return {
    config,
    clock,
    log,
    sources: freeSources,
    metrics,
    payments,
    lightningStore,
    facilitator,
    lookup: openLookup(config, stores),
    ...surfaces,
    offerOf,
    readiness,
    listed,
    market: listings.market,
    discovery: listings.discovery,
    selfTest,
    ledgerSyncFailed: stores.syncFailed,
    close: async () => {
      await Promise.all([selfTest?.stop(), clockWatch.stop()]);
      await listings.stop();
      await instance?.membership.stop();
      await payments.stop();
      await shop.lightning.stop();
      await collecting.stop();
      await outgoing.close();
      await refusals.stop();
      await ledger.close();
      ground.lock.release();
      await chain.close();
    },
  };
}

/** The lock comes first, so that no other process has this data folder open. */
async function openGround(config: Config, log: Logger, clock: Clock) {
  const common = { clock, log };
  const lock = holdDataFolder(config, log);
  const metrics = createMetrics();
  const chain = openChain(config, metrics, log);
  const collecting = openCollecting(common, config, chain);
  const ledger = await openLedger(config, clock, log, metrics);
  const outgoing = createOutgoing(common, config.web, config.publicOrigin);
  const sources = openSources({ config, chain, clock, collecting, selfTests: ledger.stores.selfTests, outgoing });
  publishSources(metrics, outgoing.upstreams);
  return { config, log, clock, lock, metrics, chain, collecting, ledger, outgoing, sources };
}

/** Nothing is started yet. */
async function openShop(ground: Awaited<ReturnType<typeof openGround>>, railList: RailList) {
  const { config, metrics, ledger, sources, clock, log } = ground;
  const { stores, bootId, instance, windows } = ledger;
  const { payments: store, books } = stores;
  const running = runningWith(config, sources);
  const named = { ...railNames(config, railList), storeBytes: config.replies.storeBytes };
  const { watchClaims, onMove, onLeft, timed } = createPaymentMetrics(metrics, { store, clock, ...named });
  const lightningStore = watchClaims(stores.lightning);
  const payments = createPayments({
    ...stores,
    ...ground,
    ...settlingMetrics(config, metrics, books, named.rails),
    store,
    bootId,
    railList,
    settledBy: instance?.settledBy,
    onMove,
    onLeft,
    timed,
  });
  publishMaintenance(metrics, payments.failing);
  const challenges = await openChallenges(config, stores.keys);
  const mpp = mppProtocol(config, challenges, clock);
  const lightning = openLightning({ ...ground, store: lightningStore, challenges, running, timed });
  const facilitator = createFacilitator({
    store: lightningStore,
    clock,
    config: config.facilitator,
    windows,
    publicOrigin: config.publicOrigin,
    ownPayTo: lightning.payTo,
    log,
  });
  return { running, payments, mpp, lightning, lightningStore, facilitator };
}

/** Closes the folder to other users. Throws ConfigError, with the command for it, where it is not ours to close. */
function holdDataFolder(config: Config, log: Logger): ReturnType<typeof holdLedger> {
  try {
    closeFolder(config.dataDir, log);
  } catch (error) {
    throw new ConfigError([`DATA_DIR: ${error instanceof Error ? error.message : String(error)}`]);
  }
  return holdLedger(join(config.dataDir, 'ledger.lock'));
}

function settlingMetrics({ network }: Config, metrics: Registry, store: BookStore, rails: readonly string[]) {
  const { onSurplus } = createBookMetrics(metrics, store, network.caip2, rails);
  return { metrics: createRelayerMetrics(metrics), onSurplus };
}

function openLookup({ network }: Config, { payments, transfers, lightning: claims }: OpenLedger['stores']) {
  const lightningNetworks = LIGHTNING_NETWORKS.map(({ id }) => id);
  return createLookup({ payments, transfers, claims, lightningNetworks, explorerUrl: network.explorerUrl });
}

/** Unpaid offers of buyers of the last hour, and of newcomers within their part, come before the others (`admit`). */
function runningWith({ handlerTimeoutMs }: Config, sale: AllSources): Running<AllSources> {
  return { sources: { sale, offer: readingAs('offer', sale), admit: readingAs('admit', sale) }, handlerTimeoutMs };
}

function readingAs(rank: Rank, sources: AllSources): AllSources {
  return { ...sources, chain: ranked(sources.chain, rank) };
}
