import type { Config } from '../../config.ts';
import type { Clock } from '../../lib/clock.ts';
import type { LightningStore } from '../../store/lightning-port.ts';
import { createRateSource } from '../../upstream/exchanges.ts';
import type { Upstreams } from '../../upstream/http.ts';
import { createReceiver } from './create-receiver.ts';
import { createLightningGate } from './gate.ts';
import { createIssuance } from './issuance.ts';
import { createIssuer } from './issuer.ts';
import { createJudge } from './judge.ts';
import { MAINNET, TESTNET } from './networks.ts';
import type { NodeLog } from './node-watch.ts';
import { createOffers } from './offers.ts';
import { createRedeem } from './redeem.ts';
import { createReplyRoom } from './reply-room.ts';
import { createServeGranted } from './serve-granted.ts';
import { INVOICE_SECONDS } from './terms.ts';

/** How often what may be forgotten is. */
const PRUNE_MS = 60_000;

interface LightningOptions<S> {
  config: Config;
  store: LightningStore;
  upstreams: Upstreams;
  sources: S;
  clock: Clock;
  bootId: string;
  log: NodeLog;
}

/** The Lightning rail, wired: its gate, its start, its upkeep and its end. */
export function createLightning<S>(options: LightningOptions<S>) {
  const { config, store, upstreams, sources, clock, bootId, log } = options;
  const { handlerTimeoutMs, publicOrigin, replies } = config;
  const { shared, invoicesPerMinute, nodeKey: expectedKey, timeoutMs } = config.lightning;
  const network = config.lightning.network === 'mainnet' ? MAINNET : TESTNET;
  const receiver = createReceiver(config.lightning, upstreams);
  const node = { network, expectedKey, expirySeconds: INVOICE_SECONDS, timeoutMs, clock, log };
  const issuer = receiver && createIssuer({ receiver, ...node });
  const rates = createRateSource({ upstreams, urls: config.markets.exchanges, clock });
  const room = createReplyRoom(replies.storeBytes);
  const issuance = createIssuance(invoicesPerMinute, clock);
  const keepMs = replies.keepSeconds * 1000;
  const serve = createServeGranted<S>({ store, room, sources, clock, handlerTimeoutMs, keepMs, log });
  const judge = createJudge({ store, issuer, rates, network, shared, clock });
  const gate = createLightningGate<S>({
    offers: createOffers({ store, issuer, rates, issuance, room, sources, network, clock, handlerTimeoutMs }),
    redeem: createRedeem({ store, issuer, judge, serve, shared, clock, bootId }),
    sources,
    network: network.id,
    publicOrigin,
    log,
  });
  let timer: NodeJS.Timeout | null = null;
  let pruning: Promise<void> | null = null;

  function prune(): Promise<void> {
    pruning ??= store
      .prune(clock.nowMs())
      .then(async () => room.set(await store.bodyBytes()))
      .catch((err) => log.warn({ err }, 'old invoices were not pruned'))
      .finally(() => {
        pruning = null;
      });
    return pruning;
  }

  return {
    gate,
    network,
    /** The node's key; null while it is unknown. */
    payTo: (): string | null => issuer?.payTo() ?? null,
    rates,
    start: async (): Promise<void> => {
      const left = await store.releaseLeasesExcept(bootId);
      if (left > 0) log.warn({ leases: left }, 'gave back leases of a process that died');
      await prune();
      timer = setInterval(prune, PRUNE_MS);
      // Rejects only when the node's connection may do more than it should: then the service must not run.
      await issuer?.start();
    },
    /** Only told: USDC is sold without it. */
    status: (): { ok: boolean; detail?: string } => issuer?.status() ?? { ok: true, detail: 'no node configured' },
    stop: async (): Promise<void> => {
      if (timer) clearInterval(timer);
      await issuer?.stop();
      await pruning;
    },
  };
}

export type Lightning<S> = ReturnType<typeof createLightning<S>>;
