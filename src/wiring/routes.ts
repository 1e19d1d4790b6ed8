import type { FastifyInstance, RouteOptions } from 'fastify';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Config } from '../config.ts';
import type { Sources } from '../endpoints/sources.ts';
import type { Facilitator } from '../facilitator/facilitator.ts';
import type { Clock } from '../lib/clock.ts';
import { openClientWindows } from '../lib/limits/count.ts';
import { createOutcomes } from '../lib/outcomes.ts';
import { keepReading } from '../lib/tasks.ts';
import { mountMcp } from '../mcp/mount.ts';
import { mountDemoBuyer } from '../pages/demo-buyer.ts';
import { renderLanding } from '../pages/landing.ts';
import { renderMarket } from '../pages/market.ts';
import { createReadAnswer, type PageParts, type PagesDeps } from '../pages/page-parts.ts';
import { mountReference } from '../pages/reference.ts';
import type { Document } from '../pages/reference-document.ts';
import { encodePage, keepPage, mountAssets, mountPage, mountSiteFiles } from '../pages/send.ts';
import { createProblemPage, renderReceipt, renderTerms } from '../pages/small.ts';
import { renderStatus } from '../pages/status.ts';
import { createSettledToday } from '../payment/books.ts';
import { onlyKnown, type Running } from '../payment/checkout.ts';
import { createGate } from '../payment/gate.ts';
import { countRefusals } from '../payment/metrics.ts';
import type { Demand, HttpProtocol, PreparedProtocol } from '../payment/protocol.ts';
import type { FoundPayment } from '../payment/receipt.ts';
import { mountLightningDescriptor } from '../routes/lightning.ts';
import { DECLARED } from '../routes/meta.ts';
import { checkGates, mountPriced, type PricedSurface } from '../routes/priced.ts';
import type { Listings } from './catalogue.ts';
import type { Collecting } from './chain.ts';
import type { ClockWatch } from './clock-watch.ts';
import type { OpenLedger } from './ledger.ts';
import type { openLightning } from './lightning.ts';
import type { Payments } from './payments.ts';
import { type Check, waysIn } from './rails.ts';
import type { createOutgoing } from './sources.ts';
import {
  type CheckoutOf,
  createCheckouts,
  isSoldPlainly,
  type offersUnder,
  plainOffers,
  toolProtocol,
  usdcProtocol,
  wordsOfRefusal,
} from './surfaces.ts';

// What registers routes, pages and tools. Each priced mount has a gate that knows what is sold there.

interface MountsParts {
  config: Config;
  catalogue: readonly Endpoint<Sources>[];
  /** What pages, tools and the reference name. */
  listed: readonly Endpoint<Sources>[];
  /** Priced routes that answer only payments from before. */
  off: readonly Endpoint<Sources>[];
  sources: Sources;
  railFor: Payments['railFor'];
  running: Running<Sources>;
  offerOf: ReturnType<typeof offersUnder>;
  lightning: ReturnType<typeof openLightning<Sources>>;
  /** Null where MPP is off. */
  mpp: PreparedProtocol | null;
  facilitator: Facilitator;
  listings: Listings;
  ledger: OpenLedger;
  feeSteps: Collecting['feeSteps'];
  outgoing: Pick<ReturnType<typeof createOutgoing>, 'upstreams'>;
  readiness: ReturnType<typeof createReadiness>;
  metrics: Registry;
  clock: Clock;
  log: Logger;
}

/** `app.ts` calls them in its order. */
export function createMounts(parts: MountsParts) {
  const { config, listed, sources, offerOf, listings, ledger } = parts;
  const checkouts = createCheckouts(parts);
  const toolCheckouts = { usdc: checkouts.usdcTools(offerOf), lightning: parts.lightning.tools };
  const { facilitator, feeSteps, readiness, clock, log } = parts;
  const onRefused = countRefusals(parts.metrics);
  const surfaces = openSurfaces(parts, checkouts, onRefused);
  const shared = { catalogue: listed, sources, clock, log };

  return {
    mountPriced: (app: FastifyInstance) => {
      for (const surface of surfaces) mountPriced(app, surface);
    },
    mountPages: (app: FastifyInstance) =>
      mountPages(app, {
        ...shared,
        config,
        readiness,
        facilitator,
        discovery: listings.discovery,
        market: listings.market,
        upstreams: parts.outgoing.upstreams.outcomes,
        charts: { feeSteps, probes: sources.reads.probes },
        settled: ledger.stores.settled,
        settledOn: waysIn(config),
        document: () => documentOf(parts),
        demoBuyer: demoBuyerOf(config, clock),
      }),
    mountLightning: (app: FastifyInstance) => mountLightningDescriptor(app, parts.lightning.describe(listed)),
    problemPage: createProblemPage(config),
    receiptPage: (id: string, payments: readonly FoundPayment[]) => renderReceipt(config, id, payments),
    mountTools: (app: FastifyInstance) =>
      mountMcp(app, {
        ...shared,
        protocol: toolProtocol,
        isLightning: parts.lightning.rail.recognises,
        checkoutOf: (endpoint, rail) => toolCheckouts[rail](endpoint),
        words: wordsOfRefusal,
        onRefused: (error) => onRefused('mcp', error),
        chain: config.network,
        network: config.network.caip2,
        publicOrigin: config.publicOrigin,
        handlerTimeoutMs: config.handlerTimeoutMs,
        search: listings.discovery,
        limits: {
          free: { perMinute: config.rateLimits.free, windows: openClientWindows(ledger.nearWindows, 'mcp-free') },
          priced: { perMinute: config.rateLimits.priced, windows: openClientWindows(ledger.nearWindows, 'mcp-priced') },
        },
      }),
    checkGates: (routes: readonly RouteOptions[]) => {
      for (const surface of surfaces) checkGates(surface, routes);
    },
  };
}

/** For play money alone (`config/sources.ts`). Its signer is loaded with its first payment. */
function demoBuyerOf({ site, network: { chainId, usdc } }: Config, clock: Clock) {
  const { demoBuyerKey: privateKey } = site;
  if (privateKey === null) return null;
  return async (to: string, value: string) => {
    const { createTransferSigner } = await import('../payment/usdc/transfer-signer.ts');
    return createTransferSigner({ privateKey, chainId, usdc, clock })(to, value);
  };
}

/** Loaded on demand, because it is a tenth of a start's work. */
async function documentOf({ config, listed: catalogue, offerOf }: MountsParts): Promise<Document> {
  const { createOpenApi } = await import('../http/openapi/openapi.ts');
  const { publicOrigin, network: chain, protocols, web } = config;
  const requirementOf = (endpoint: Endpoint<never>) => offerOf(endpoint).requirement;
  const described = { catalogue, declared: DECLARED, requirementOf, chain, publicOrigin };
  const { mpp } = protocols;
  return (await createOpenApi({ ...described, mpp, contactUrl: web.contactUrl })) as unknown as Document;
}

function openSurfaces(
  { config, off, sources, offerOf, mpp, log, ...parts }: MountsParts,
  checkouts: ReturnType<typeof createCheckouts<Sources>>,
  onRefused: ReturnType<typeof countRefusals>,
) {
  const { segment: chainSegment } = config.network;
  // What the configuration cannot answer is like what is off: only payments from before are answered.
  const known = parts.catalogue.map((one) => (one.notConfigured?.(sources) ? { ...one, isOff: true as const } : one));
  const catalogue = [...known, ...off];
  const priced = (
    surface: PricedSurface<Sources>['surface'],
    checkoutOf: CheckoutOf<Sources, Demand>,
    protocol: HttpProtocol,
    sells = (_: Endpoint<Sources>) => true,
  ): PricedSurface<Sources> => {
    const gate = createGate<Sources>({
      checkoutOf(endpoint) {
        const missing = endpoint.notConfigured?.(sources);
        const checkout = checkoutOf(endpoint);
        if (missing) return onlyKnown(checkout, () => missing);
        return endpoint.isOff || !sells(endpoint) ? onlyKnown(checkout) : checkout;
      },
      protocol,
      log,
      onRefused: (error) => onRefused(surface, error),
    });
    return { surface, gate, catalogue, chainSegment };
  };
  const surfaces = [
    priced('paid', checkouts.usdcRoutes(offerOf, sources), usdcProtocol),
    priced('lightning', parts.lightning.routes, parts.lightning.protocol),
  ];
  if (mpp) {
    const plain = checkouts.usdcRoutes(plainOffers(config, mpp), sources);
    surfaces.push(priced('mpp', plain, mpp, (endpoint) => isSoldPlainly(endpoint, config.rails)));
  }
  return surfaces;
}

interface ReadinessParts {
  payments: Pick<Payments, 'readiness'>;
  /** Ways to pay that are no rails in USDC. */
  others: Readonly<Record<string, () => Check>>;
  collector: Sources['collector'];
  ledger: Pick<OpenLedger, 'instance' | 'leads'>;
  clock: Clock;
  clockWatch: Pick<ClockWatch, 'status'>;
}

/** How long a reading is reused: a load balancer asks each second. */
const KEPT_MS = 1000;

/**
 * Whether paid calls can be served now, and why not. Only the first rail counts towards `ready`: with the others down
 * there is still a way to pay. Nor does the collector count (paid calls can read the live chain), a clock that is off
 * (it moves no money wrongly), or another instance. Each reading asks a provider, and a flood of requests must not make
 * an instance look unready: so a reading is made at most once a second.
 */
export function createReadiness(parts: ReadinessParts) {
  const { payments, collector, ledger, clock, clockWatch } = parts;
  const outcomes = createOutcomes(clock);
  const read = async () => {
    const { needed: counting, others } = await payments.readiness();
    const apart = Object.entries(parts.others).map(([name, status]) => [name, status()] as const);
    const rails = { ...others, ...Object.fromEntries(apart) };
    for (const [name, { ok, detail = 'no detail' }] of Object.entries({ ...counting, ...rails })) {
      if (ok) outcomes.succeeded(name);
      else outcomes.failed(name, detail);
    }
    const { collected, backfill, fault } = collector.status();
    const { instance } = ledger;
    return {
      ready: Object.values(counting).every(({ ok }) => ok),
      failing: Object.keys(counting).filter((name) => !counting[name]?.ok),
      ways: Object.keys(others),
      checks: {
        ...counting,
        ...(instance && {
          instances: { ok: true, leads: ledger.leads(), living: instance.membership.living().length },
        }),
        clock: clockWatch.status(),
        ...rails,
        collector: {
          ok: true,
          ...(fault !== null && { detail: `nothing new is stored: ${fault}` }),
          collected: collected?.number ?? null,
          backfill,
        },
      },
    };
  };
  // For the status page.
  return Object.assign(keepReading(read, KEPT_MS, clock), { outcomeOf: outcomes.of });
}

/** Mounts the pages for people and their assets, in the rate-limited group of free routes. */
function mountPages<S>(app: FastifyInstance, deps: PagesDeps<S>): void {
  const { clock } = deps;
  const parts: PageParts = { ...deps, read: createReadAnswer(deps), startedAtMs: clock.nowMs() };
  const railOf = (contract: Uint8Array | null) => (contract ? deps.settledOn(contract) : 'lightning');
  const settledToday = createSettledToday(deps.settled, railOf, clock, ['usdc', 'lightning']);
  mountAssets(app);
  mountSiteFiles(app);
  const terms = encodePage(renderTerms(deps.config));
  mountPage(app, '/terms', () => terms);
  mountReference(app, deps);
  const prices = new Set(deps.catalogue.flatMap(({ price }) => (price ? [String(price.units)] : [])));
  mountDemoBuyer(app, { ...deps, prices });
  const landing = keepPage(clock, () => renderLanding(parts));
  mountPage(app, '/', landing);
  const status = keepPage(clock, () => renderStatus(parts, settledToday));
  mountPage(app, '/status', status);
  mountPage(app, '/market', async (request, reply) => {
    const { text, isBad } = await renderMarket(parts, request.query as Record<string, unknown>);
    if (isBad) reply.code(400);
    return text;
  });
}
