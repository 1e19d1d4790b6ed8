import type { FastifyInstance, RouteOptions } from 'fastify';
import type { Logger } from 'pino';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Config } from '../config.ts';
import type { Sources } from '../endpoints/sources.ts';
import type { Facilitator } from '../facilitator/facilitator.ts';
import type { Clock } from '../lib/clock.ts';
import { openClientWindows } from '../lib/limits/client-limit.ts';
import { mountMcp } from '../mcp/mount.ts';
import { createGate } from '../payment/gate.ts';
import type { Payments } from '../payment/open-rails.ts';
import { termsOf } from '../payment/protocols/x402/requirements.ts';
import type { Lightning } from '../payment/rails/lightning/open.ts';
import { checkLightningGates, mountLightning } from '../routes/lightning.ts';
import { mountPages } from '../routes/pages.ts';
import { checkGates, mountPaid } from '../routes/paid.ts';
import type { Listings } from './listings.ts';
import type { Collecting } from './open-collecting.ts';
import type { OpenLedger } from './open-ledger.ts';
import type { createReadiness } from './readiness.ts';

interface MountsParts {
  config: Config;
  catalogue: readonly Endpoint<Sources>[];
  sources: Sources;
  purchase: Payments['purchase'];
  lightning: Lightning<Sources>;
  facilitator: Facilitator;
  listings: Listings;
  ledger: OpenLedger;
  feeSteps: Collecting['feeSteps'];
  readiness: ReturnType<typeof createReadiness>;
  clock: Clock;
  log: Logger;
}

/** How what is sold, shown and called as a tool is hung into the application, each group where `app.ts` wants it. */
export function createMounts({
  config,
  catalogue,
  sources,
  purchase,
  lightning,
  listings,
  ledger,
  ...rest
}: MountsParts) {
  const { facilitator, feeSteps, readiness, clock, log } = rest;
  const { segment } = config.network;
  const terms = termsOf(config);
  const gate = createGate<Sources>(terms, purchase);
  const shared = { catalogue, sources, clock, log };

  return {
    mountPriced: (app: FastifyInstance) => {
      mountPaid(app, gate, catalogue, segment);
      mountLightning(app, lightning.gate, catalogue, segment);
    },
    mountPages: (app: FastifyInstance) =>
      mountPages(app, {
        ...{ ...shared, config, readiness, facilitator },
        discovery: listings.discovery,
        market: listings.market,
        lightning: lightning.status,
        charts: { feeSteps, probes: sources.reads.probes },
        settled: ledger.stores.settled,
      }),
    mountTools: (app: FastifyInstance) =>
      mountMcp(app, {
        ...{ ...shared, terms, purchase },
        handlerTimeoutMs: config.handlerTimeoutMs,
        lightning: { offers: lightning.offers, redeem: lightning.redeem, network: lightning.network.id },
        search: listings.discovery,
        limits: {
          free: { perMinute: config.rateLimits.free, windows: openClientWindows(ledger.nearWindows, 'mcp-free') },
          priced: { perMinute: config.rateLimits.priced, windows: openClientWindows(ledger.nearWindows, 'mcp-priced') },
        },
      }),
    checkGates: (routes: readonly RouteOptions[]) => {
      checkGates(gate, routes, catalogue, segment);
      checkLightningGates(lightning.gate, routes, catalogue, segment);
    },
  };
}
