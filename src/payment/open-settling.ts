import type { ChainClient } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import type { RelayerSpendingStore } from '../store/ports/spending.ts';
import type { GatewayTransferStore } from '../store/ports/transfers.ts';
import type { Upstreams } from '../upstream/client/http.ts';
import type { ChainCheck } from './evm/chain-check.ts';
import type { Evidence } from './evm/evidence.ts';
import type { TokenWatch } from './evm/token-watch.ts';
import type { Ledger } from './ledger.ts';
import { createRails } from './open-settlers.ts';
import { createRailWatch } from './rail-watch.ts';
import type { OpenGateway } from './rails/usdc-gateway/open.ts';
import { createSettlement } from './settlement.ts';
import type { Settler } from './settler.ts';
import type { RelayerMetrics } from './settlers/relayer/metrics.ts';
import { createRelaying } from './settlers/relayer/relaying.ts';
import type { Wallet } from './settlers/relayer/wallet.ts';
import { type Carrier, createCarrier } from './settling-local.ts';

interface OwnSettlingOptions {
  config: Config;
  chain: ChainClient;
  /** Null where a facilitator settles and no relayer is configured. */
  wallet: Wallet | null;
  check: ChainCheck;
  evidence: Evidence;
  token: TokenWatch;
  gateway: OpenGateway | null;
  ledger: Ledger;
  /** The lease under which this process settles, where several may. */
  fence?: number | undefined;
  spending: RelayerSpendingStore;
  relayerMetrics: RelayerMetrics | undefined;
  transfers: GatewayTransferStore;
  outgoing: { readonly upstreams: Upstreams; readonly userAgent: string };
  clock: Clock;
  log: {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
    error(detail: object, message: string): void;
  };
}

/** Settlement by this process: the rails that are on, the work on each row, and what is looked after by the timer. */
export function createOwnSettling(options: OwnSettlingOptions) {
  const { config, chain, wallet, check, evidence, token, gateway, ledger, spending, fence, clock, log } = options;
  const noteBroadcast: Ledger['noteBroadcast'] = (entries) => ledger.noteBroadcast(entries, fence);
  const { remote } = config.rails;
  const relaying =
    wallet && !remote
      ? createRelaying({
          ...{ config, chain, wallet, check, evidence, token, noteBroadcast, spending, clock, log },
          metrics: options.relayerMetrics,
        })
      : null;
  const rails = createRails({
    remote,
    gateway,
    network: config.network,
    seller: config.seller,
    publicOrigin: config.publicOrigin,
    ...options.outgoing,
    relayer: () => {
      if (!relaying) throw new Error('RELAYER_PRIVATE_KEY is missing');
      return relaying.settler;
    },
    evidence,
    check,
    token,
    transfers: options.transfers,
    noteBroadcast,
    clock,
    pollMs: config.receiptPollMs,
    waitMs: config.settleWaitMs,
    log,
  });
  const watch = createRailWatch(rails.probe, clock, log);
  const settlement = createSettlement({ ledger, railOf: rails.of, clock, waitMs: config.settleWaitMs, fence, log });
  const { settler } = rails.direct;
  const gatewayUnavailable = () => rails.gateway?.settler.unavailable() ?? null;
  const carrier: Carrier = createCarrier({ ledger, settlement, settler, gatewayUnavailable, probes: watch.latest });

  return {
    settler,
    gatewayUnavailable,
    settlement,
    carrier,
    probes: watch.latest,
    detail: (): string | null => relaying?.detail() ?? null,
    load: async () => relaying?.load(),
    /** What the timer looks after beside the rows; rejects with the first that failed, when all have been tried. */
    refresh: async (): Promise<void> => {
      const parts = [relaying?.refresh(), token.refresh(), rails.gateway?.batches.round(), watch.refresh()];
      const failed = (await Promise.allSettled(parts)).find((part) => part.status === 'rejected');
      if (failed) throw failed.reason;
    },
    stop: async () => {
      await rails.stop();
      await settlement.idle();
    },
  };
}

export type OwnSettling = Pick<
  ReturnType<typeof createOwnSettling>,
  'gatewayUnavailable' | 'settlement' | 'carrier' | 'probes' | 'detail' | 'load' | 'refresh' | 'stop'
> & { readonly settler: Pick<Settler, 'unavailable' | 'refuses' | 'refusesCode'> };
