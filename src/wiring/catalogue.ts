import type { Logger } from 'pino';
import { type AllSources, catalogue as everything } from '../catalogue/catalogue.ts';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { type Offered, offeredCatalogue } from '../catalogue/offered.ts';
import { entriesOn, servedPaths } from '../catalogue/paths.ts';
import { type Config, ConfigError } from '../config.ts';
import { createDiscovery } from '../discovery/discovery.ts';
import { createOwnListings } from '../discovery/entry.ts';
import { createCatalogue, NO_CATALOGUE } from '../discovery/foreign-catalogue.ts';
import { createMarket } from '../discovery/market.ts';
import { createCaller } from '../discovery/market-probe.ts';
import { createMarketSchedule } from '../discovery/market-schedule.ts';
import type { Clock } from '../lib/clock.ts';
import type { LedgerStores } from '../store/ports/stores.ts';
import { RAILS, type RailList, railsSelling } from './rails.ts';
import type { createOutgoing } from './sources.ts';
import { isSoldPlainly } from './surfaces.ts';

// What this configuration sells, and why it cannot be started with; then where that is listed: our own search, the
// market, a third-party catalogue. The self-test pays plainly, so its two routes must
// be sold plainly.

type Settings = Pick<Config, 'offers' | 'rails' | 'selfTest' | 'network'>;

/** The self-test checks by it that a failing call costs nothing. */
const FAILING = '/selftest/fail';

/** The list that every surface is made of. Throws ConfigError with every reason why nothing can be sold by it. */
export function openCatalogue(
  config: Settings,
  declared: readonly Endpoint<AllSources>[] = everything,
  railList: RailList = RAILS,
): Offered<Endpoint<AllSources>> {
  const offered = offeredCatalogue(declared, config.offers);
  const sold = entriesOn(offered.catalogue, 'paid');
  const problems = [...offered.problems, ...unsold(sold, config, railList), ...selfTestFaults(sold, config, railList)];
  if (problems.length > 0) throw new ConfigError(problems);
  return offered;
}

export function listedEntries<S>(catalogue: readonly Endpoint<S>[], sources: S): readonly Endpoint<S>[] {
  return catalogue.filter(({ notConfigured }) => !notConfigured?.(sources));
}

/** Names the routes that no rail sells. Lightning is no rail of `/v1/paid`. */
function unsold(sold: readonly Endpoint<never>[], { rails }: Settings, railList: RailList): string[] {
  const without = sold.filter(({ price }) => price && railsSelling(price.units, rails, railList).length === 0);
  if (without.length === 0) return [];
  const names = without.map(({ path, price }) => `${path.slice(1)} (${price?.usd})`).join(', ');
  const key = rails.exactFrom === null ? 'EXACT=off' : 'EXACT_FROM_USD';
  return [
    `${key} leaves routes that no rail sells for USDC: ${names} (turn CHANNELS or GATEWAY on, change EXACT or ` +
      'EXACT_FROM_USD, give these routes higher PRICES, or name them in ROUTES_OFF; selftest/fail needs a price)',
  ];
}

function selfTestFaults(sold: readonly Endpoint<never>[], config: Settings, railList: RailList): string[] {
  const { selfTest, rails, network } = config;
  if (selfTest.privateKey === null) return [];
  const [asked = ''] = selfTest.path.split('?');
  const bought = sold.find((endpoint) => servedPaths(endpoint, 'paid', network.segment).includes(asked));
  const failing = sold.find(({ path }) => path === FAILING);
  const faultOf = (endpoint: Endpoint<never>): string[] =>
    isSoldPlainly(endpoint, rails, railList)
      ? []
      : [
          'SELFTEST_PRIVATE_KEY is set, but the self-test pays by usdc-exact, which does not sell ' +
            `${endpoint.path.slice(1)} at ${endpoint.price?.usd} (EXACT, EXACT_FROM_USD, PRICES; or another ` +
            'SELFTEST_PATH, or no self-test)',
        ];
  return [
    ...(bought ? faultOf(bought) : [`SELFTEST_PATH: ${asked} is not sold for USDC here`]),
    ...(failing ? faultOf(failing) : []),
  ];
}

interface ListingsParts {
  config: Config;
  /** Only the process that leads calls listings and reads the catalogue. */
  ledger: { readonly stores: Pick<LedgerStores, 'market' | 'catalogue'>; leads(): boolean };
  outgoing: ReturnType<typeof createOutgoing>;
  catalogue: readonly Endpoint<AllSources>[];
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
