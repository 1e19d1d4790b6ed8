import type { Logger } from 'pino';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Config } from '../config.ts';
import { createDiscovery } from '../discovery/discovery.ts';
import { createCatalogue, NO_CATALOGUE } from '../discovery/foreign-catalogue.ts';
import { createMarket } from '../discovery/market.ts';
import { createCaller } from '../discovery/market-probe.ts';
import { createMarketSchedule } from '../discovery/market-schedule.ts';
import { createOwnListings } from '../discovery/own-entries.ts';
import type { Sources } from '../endpoints/sources.ts';
import type { Clock } from '../lib/clock.ts';
import type { LedgerStores } from '../store/ports/stores.ts';
import { railsSelling } from './rails.ts';
import type { createOutgoing } from './sources.ts';

interface ListingsParts {
  config: Config;
  /** Only the process that leads calls listings and reads the catalogue. */
  ledger: { readonly stores: Pick<LedgerStores, 'market' | 'catalogue'>; leads(): boolean };
  outgoing: ReturnType<typeof createOutgoing>;
  catalogue: readonly Endpoint<Sources>[];
  readiness(): Promise<{ readonly ready: boolean }>;
  clock: Clock;
  log: Logger;
}

export function openListings(parts: ListingsParts) {
  const { config, outgoing, catalogue, clock, log } = parts;
  const isReady = async () => (await parts.readiness()).ready;
  const { stores, leads } = parts.ledger;
  const { publicOrigin, seller: payTo } = config;
  const { caip2: network, usdc } = config.network;
  const { probeIntervalMs: intervalMs, timeoutMs } = config.market;
  const payable = { network, usdc };
  const { dial, userAgent, upstreams } = outgoing;
  const store = stores.market;
  const caller = createCaller({ dial, userAgent, timeoutMs, payable, publicOrigin });
  const market = createMarket({ store, caller, network, limits: config.market, clock, log });
  const round = { onRound: market.refresh, mayCall: leads };
  const schedule = createMarketSchedule({ store, caller, clock, intervalMs, log, ...round });
  const url = config.discovery.catalogueUrl;
  const bounds = { timeoutMs: 10_000, maxBytes: 4 * 1024 * 1024, concurrency: 1, retries: 1 } as const;
  const openCopy = (from: string) => {
    const upstream = upstreams.open({ name: 'catalogue', ...bounds });
    return createCatalogue({ upstream, url: from, payable, store: stores.catalogue, clock, log });
  };
  const copy = url === null ? NO_CATALOGUE : openCopy(url);
  const railOf = ({ price }: Endpoint<never>) => railsSelling(price?.units ?? 0n, config.rails)[0]?.needs ?? 'direct';
  const own = createOwnListings({ catalogue, network, payTo, publicOrigin, railOf });
  const copied = { catalogue: copy, readsCatalogue: leads };
  const discovery = createDiscovery({ own, market, ...copied, network, isReady, clock, log });
  return {
    market,
    discovery,
    start: async () => {
      await market.start();
      await discovery.start();
      schedule.start();
    },
    stop: async () => {
      await schedule.stop();
      await discovery.stop();
      await market.stop();
    },
  };
}

export type Listings = ReturnType<typeof openListings>;
