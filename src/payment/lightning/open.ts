import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Endpoint } from '../../catalogue/endpoint.ts';
import { entriesOn, pathOn } from '../../catalogue/paths.ts';
import type { Config } from '../../config.ts';
import type { Clock } from '../../lib/clock.ts';
import type { OpenWindows } from '../../lib/limits/count.ts';
import { createClientTurns } from '../../lib/limits/shares.ts';
import { shareRun } from '../../lib/tasks.ts';
import type { LightningStore } from '../../store/ports/lightning.ts';
import type { Upstream, Upstreams } from '../../upstream/client/client.ts';
import { createRateSource, type RateSource, type WatchedRates } from '../../upstream/rates/bitcoin.ts';
import { createIssuance, createNewcomers, createRecentBuyers } from './issuance.ts';
import { createIssuer, type Issuer } from './issuer.ts';
import { createReplyQuota } from './kept-replies.ts';
import type { NodeLog } from './node-watch.ts';
import { createCln } from './nodes/cln.ts';
import { createLnd } from './nodes/lnd.ts';
import { createNwc } from './nodes/nwc.ts';
import { createPhoenixd } from './nodes/phoenixd.ts';
import type { Receiver } from './nodes/receiver.ts';
import { createOffers, type LightningRail } from './offers.ts';
import { createProofVerifier, createRedeem } from './redeem.ts';
import { createServeGranted } from './serve-granted.ts';
import { INVOICE_SECONDS, type LightningNetwork, LNBTC_SPEC_URL, MAINNET, TESTNET } from './terms.ts';

// Composes the Lightning rail, starts and stops it, deletes expired records, and describes it at `GET /v1/lightning`.

const PRUNE_MS = 60_000;
// Handlers of unpaid offers: 20 run at once, 4 of them for those that may use the reserves. 160 more may wait, 32 of
// them such, and 6 of one client: twenty greedy clients (120) leave places free. A paid retry does not queue.
const OFFER_TURNS = { running: 20, waiting: 160, waitingPerClient: 6, reserved: { running: 4, waiting: 32 } };

interface LightningOptions {
  config: Config;
  store: LightningStore;
  upstreams: Upstreams;
  clock: Clock;
  bootId: string;
  /** Whether this process deletes expired records: one does that for all. True by default. */
  runsMaintenance?(): boolean;
  /** Whether no other process can be alive. Then leases of others belong to dead ones. */
  isAlone?: boolean;
  sharedBy?: () => number;
  /** Opens the counters of new invoices by their name; in this process's memory by default. */
  windows?: OpenWindows | undefined;
  log: NodeLog;
}

export function createLightning(options: LightningOptions) {
  const { config, store, upstreams, clock, bootId, runsMaintenance = () => true, isAlone = true, log } = options;
  const { handlerTimeoutMs, replies } = config;
  const { shared, invoicesPerMinute, nodeKey: expectedKey, timeoutMs } = config.lightning;
  const network = config.lightning.network === 'mainnet' ? MAINNET : TESTNET;
  const receiver = createReceiver(config.lightning, upstreams);
  const node = { network, expectedKey, expirySeconds: INVOICE_SECONDS, timeoutMs, clock, log };
  const issuer = receiver && createIssuer({ receiver, ...node });
  const rates = createRateSource(clock, upstreams, config.markets.exchanges);
  const quota = createReplyQuota(clock, replies.storeBytes, options.sharedBy);
  const buyers = createRecentBuyers(clock);
  const issuance = createIssuance(invoicesPerMinute, clock, options.windows);
  const keepMs = replies.keepSeconds * 1000;
  const serve = createServeGranted({ clock, log }, store, quota, handlerTimeoutMs, keepMs);
  const verifyProof = createProofVerifier({ store, issuer, rates, network, shared, clock });
  const bounds = { issuance, quota, buyers, turns: createClientTurns(OFFER_TURNS) };
  const offer = createOffers({ store, issuer, rates, network, clock, ...bounds, newcomers: createNewcomers(clock) });
  const redeem = createRedeem({ store, issuer, verifyProof, serve, buyers, shared, clock, bootId });
  const rail: LightningRail = {
    recognises: ({ network: named }) => typeof named === 'string' && named.startsWith('lnbtc:'),
    sell: redeem,
    offer,
  };
  let timer: NodeJS.Timeout | null = null;
  const prune = shareRun(() =>
    (runsMaintenance() ? store.prune(clock.nowMs()) : Promise.resolve())
      .then(async () => quota.set({ all: await store.bodyBytes(), offered: await store.offeredBytes() }))
      .catch((err) => log.warn({ err }, 'old invoices were not pruned')),
  );

  return {
    rail,
    network,
    payTo: (): string | null => issuer?.payTo() ?? null,
    rates,
    start: async (): Promise<void> => {
      const left = isAlone ? await store.releaseLeasesExcept(bootId) : 0;
      if (left > 0) log.warn({ leases: left }, 'released the leases of a process that died');
      await prune();
      timer = setInterval(prune, PRUNE_MS);
      // Rejects only when the node's connection may do more than it should. Then the service must not run.
      await issuer?.start();
    },
    /** Whether this rail makes offers, and why not. Only shown: USDC is sold meanwhile. */
    status: () => statusOf(issuer, rates),
    stop: async (): Promise<void> => {
      if (timer) clearInterval(timer);
      await issuer?.stop();
      await prune.idle();
    },
  };
}

function statusOf(issuer: Issuer | null, rates: WatchedRates): { ok: boolean; detail?: string } {
  if (!issuer) return { ok: true, detail: 'no node configured' };
  const node = issuer.status();
  const fault = rates.fault();
  return node.ok && fault !== null ? { ok: false, detail: fault } : node;
}

export type Lightning = ReturnType<typeof createLightning>;

const PRICING =
  "each route's USD price converted to sats at the median BTC/USD of three exchanges, " +
  `rounded up to a whole sat, minimum 1; an invoice lasts ${INVOICE_SECONDS} seconds`;

/** How and at which rate the routes are sold. `btcUsd`, `rate` and `payTo` are null while unknown. */
export function createLightningDescriptor(
  clock: Clock,
  catalogue: readonly Endpoint<never>[],
  network: LightningNetwork,
  payTo: () => string | null,
  rates: RateSource,
) {
  const routes = entriesOn(catalogue, 'lightning').map((endpoint) => ({
    route: `GET ${pathOn(endpoint, 'lightning')}`,
    priceUsd: endpoint.price?.usd ?? null,
  }));
  return async () => {
    // While there is no rate every route answers 503, so an older one would promise a price that nobody gets.
    const rate = await rates.current().catch(() => null);
    return {
      scheme: 'exact',
      network: network.id,
      asset: 'BTC',
      payTo: payTo(),
      spec: LNBTC_SPEC_URL,
      pricing: PRICING,
      btcUsd: rate?.rate ?? null,
      rate: rate && {
        exchanges: rate.exchanges,
        retrievedAt: Math.floor(rate.retrievedAtMs / 1000),
        ageSeconds: Math.max(0, Math.round((clock.nowMs() - rate.retrievedAtMs) / 1000)),
      },
      routes,
    };
  };
}

// --- The configured node

/** The largest answer, LND's getinfo, has several KiB. */
const MAX_BYTES = 256 * 1024;
/** A node makes an invoice in milliseconds. More requests at once would only queue there. */
const CONCURRENCY = 8;

/** Sends no request. Null where no node is configured. Throws when the configured certificate cannot be used. */
export function createReceiver({ receiver, timeoutMs }: Config['lightning'], upstreams: Upstreams): Receiver | null {
  if (receiver === null) return null;
  const open = (ca: string | null): Upstream =>
    upstreams.open({
      name: receiver.kind,
      timeoutMs,
      maxBytes: MAX_BYTES,
      concurrency: CONCURRENCY,
      // The issuer handles failures and waits before it asks again.
      retries: 0,
      ...(ca === null ? {} : { ca }),
    });
  switch (receiver.kind) {
    case 'lnd':
      return createLnd(open(certificate(receiver.tlsCertFile)), receiver.url, receiver.macaroon);
    case 'cln':
      return createCln(open(certificate(receiver.tlsCertFile)), receiver.url, receiver.rune);
    case 'phoenixd':
      return createPhoenixd(open(null), receiver.url, receiver.password);
    case 'nwc':
      return createNwc(receiver.connection, timeoutMs);
  }
}

/** Read once, at start: an operator who replaces it must restart the service. */
function certificate(file: string | null): string | null {
  if (file === null) return null;
  try {
    const pem = readFileSync(file, 'utf8');
    new X509Certificate(pem);
    return pem;
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unreadable';
    throw new Error(`LIGHTNING_NODE_TLS_CERT: no PEM certificate can be read from ${file} (${code})`, { cause });
  }
}
