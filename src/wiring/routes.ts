import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { AllSources } from '../catalogue/catalogue.ts';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Config } from '../config.ts';
import type { Facilitator } from '../facilitator/facilitator.ts';
import type { Clock } from '../lib/clock.ts';
import { openClientWindows } from '../lib/limits/count.ts';
import { createOutcomes } from '../lib/outcomes.ts';
import { keepReading } from '../lib/tasks.ts';
import type { McpDeps } from '../mcp/mount.ts';
import type { PagesDeps } from '../pages/page-parts.ts';
import { createProblemPage, createUnpaidPage, renderReceipt } from '../pages/small.ts';
import { onlyKnown, type Running } from '../payment/checkout.ts';
import { createGate, type UnpaidPage } from '../payment/gate.ts';
import type { RefusalCounts } from '../payment/history.ts';
import { countRefusals } from '../payment/metrics.ts';
import type { Demand, HttpProtocol, PreparedProtocol } from '../payment/protocol.ts';
import type { FoundPayment } from '../payment/receipt.ts';
import { PaymentRefused, refusalName } from '../payment/refusal.ts';
import type { PricedSurface } from '../routes/paid.ts';
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
  sentenceOfRefusal,
  toolProtocol,
  usdcProtocol,
  wordsOfRefusal,
} from './surfaces.ts';

// What the routes, the pages and the tools are given. Each priced surface has a gate that knows what is sold there.

interface SurfacesParts {
  config: Config;
  catalogue: readonly Endpoint<AllSources>[];
  /** What pages, tools and the reference name. */
  listed: readonly Endpoint<AllSources>[];
  /** Priced routes that answer only payments from before. */
  off: readonly Endpoint<AllSources>[];
  sources: AllSources;
  railFor: Payments['railFor'];
  running: Running<AllSources>;
  offerOf: ReturnType<typeof offersUnder>;
  lightning: ReturnType<typeof openLightning<AllSources>>;
  /** Null where MPP is off. */
  mpp: PreparedProtocol | null;
  facilitator: Facilitator;
  listings: Listings;
  ledger: OpenLedger;
  feeSteps: Collecting['feeSteps'];
  outgoing: Pick<ReturnType<typeof createOutgoing>, 'upstreams'>;
  readiness: ReturnType<typeof createReadiness>;
  refusals: RefusalCounts;
  metrics: Registry;
  clock: Clock;
  log: Logger;
}

/** What `app.ts` gives to the plugins of routes. */
export function createSurfaces(parts: SurfacesParts) {
  const { config, sources, offerOf, lightning, mpp } = parts;
  const { usdcRoutes, usdcTools } = createCheckouts(parts);
  const countRefusal = countRefusals(parts.metrics);
  const isOurs = (reason: string) => sentenceOfRefusal(reason) !== undefined;
  const onRefused = (surface: string, error: unknown): void => {
    const name = refusalName(error, isOurs);
    countRefusal(surface, name);
    parts.refusals.count(name);
    if (error instanceof PaymentRefused && !isOurs(error.reason))
      parts.log.debug({ surface, reason: error.reason.slice(0, 100) }, 'a third party refused a payment');
  };
  const surface = surfacesOf(parts, onRefused);
  const pages = pagesOf(parts);
  const pageOf = createUnpaidPage({ ...pages, hasLightning: config.lightning.receiver !== null });
  const toolCheckouts = { usdc: usdcTools(offerOf), lightning: lightning.tools };
  const isPlain = (endpoint: Endpoint<never>) => isSoldPlainly(endpoint, config.rails);

  return {
    paid: surface('paid', usdcRoutes(offerOf, sources), usdcProtocol, { pageOf }),
    lightning: {
      ...surface('lightning', lightning.routes, lightning.protocol),
      describe: lightning.describe(parts.listed),
    },
    mpp: mpp && surface('mpp', usdcRoutes(plainOffers(config, mpp), sources), mpp, { sells: isPlain }),
    pages,
    tools: {
      ...toolsOf(parts),
      isLightning: lightning.rail.recognises,
      checkoutOf: (endpoint, rail) => toolCheckouts[rail](endpoint),
      onRefused: (error) => onRefused('mcp', error),
    } satisfies McpDeps<AllSources>,
    problemPage: createProblemPage(config),
    receiptPage: (id: string, payments: readonly FoundPayment[]) => renderReceipt(config, id, payments),
  };
}

function pagesOf(parts: SurfacesParts): PagesDeps<AllSources> {
  const { config, listed: catalogue, sources, listings, ledger, clock } = parts;
  return {
    ...parts,
    catalogue,
    discovery: listings.discovery,
    market: listings.market,
    upstreams: parts.outgoing.upstreams.outcomes,
    charts: { feeSteps: parts.feeSteps, probes: sources.reads.probes },
    settled: ledger.stores.settled,
    settledOn: waysIn(config),
    refused: config.statusHistory ? { read: parts.refusals.read, sentenceOf: sentenceOfRefusal } : null,
    demoBuyer: demoBuyerOf(config, clock),
  };
}

function toolsOf({ config, listed: catalogue, sources, listings, ledger, clock, log }: SurfacesParts) {
  const { rateLimits, network, publicOrigin, handlerTimeoutMs } = config;
  const limitOf = (group: 'free' | 'priced') => ({
    perMinute: rateLimits[group],
    windows: openClientWindows(ledger.nearWindows, `mcp-${group}`),
  });
  return {
    catalogue,
    sources,
    clock,
    log,
    protocol: toolProtocol,
    words: wordsOfRefusal,
    chain: network,
    network: network.caip2,
    publicOrigin,
    handlerTimeoutMs,
    search: listings.discovery,
    limits: { free: limitOf('free'), priced: limitOf('priced') },
  };
}

/** For play money alone (`config/sources.ts`). Its signer is loaded with its first payment. */
function demoBuyerOf({ site, network: { chainId, usdc } }: Config, clock: Clock) {
  const { demoBuyerKey: privateKey } = site;
  if (privateKey === null) return null;
  return async (to: string, value: string) => {
    const { createTransferSigner } = await import('../payment/usdc/transfer-signer.ts');
    return createTransferSigner(clock, privateKey, chainId, usdc)(to, value);
  };
}

interface SurfaceRules {
  /** By default everything that is on. */
  readonly sells?: (endpoint: Endpoint<AllSources>) => boolean;
  readonly pageOf?: (endpoint: Endpoint<AllSources>) => UnpaidPage;
}

/** Makes the priced surfaces, each with a gate that knows what is sold there. */
function surfacesOf(
  { config, catalogue, off, sources, log }: SurfacesParts,
  onRefused: (surface: string, error: unknown) => void,
) {
  // What the configuration cannot answer is like what is off: only payments from before are answered.
  const known = catalogue.map((one) => (one.notConfigured?.(sources) ? { ...one, isOff: true as const } : one));
  return (
    surface: PricedSurface<AllSources>['surface'],
    checkoutOf: CheckoutOf<AllSources, Demand>,
    protocol: HttpProtocol,
    { sells = () => true, pageOf }: SurfaceRules = {},
  ): PricedSurface<AllSources> => {
    const gate = createGate<AllSources>({
      checkoutOf(endpoint) {
        const missing = endpoint.notConfigured?.(sources);
        const checkout = checkoutOf(endpoint);
        if (missing) return onlyKnown(checkout, () => missing);
        return endpoint.isOff || !sells(endpoint) ? onlyKnown(checkout) : checkout;
      },
      protocol,
      log,
      onRefused: (error) => onRefused(surface, error),
      ...(pageOf && { pageOf }),
    });
    return { surface, gate, catalogue: [...known, ...off], chainSegment: config.network.segment };
  };
}

interface ReadinessParts {
  payments: Pick<Payments, 'readiness'>;
  /** Ways to pay that are no rails in USDC. */
  others: Readonly<Record<string, () => Check>>;
  collector: AllSources['collector'];
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
