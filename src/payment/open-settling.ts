import type { ChainClient } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import type { Payment } from '../store/ports/sales.ts';
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
import { createRecovery } from './recovery.ts';
import { createSettlement } from './settlement.ts';
import type { RelayerMetrics } from './settlers/relayer/metrics.ts';
import { createRelaying } from './settlers/relayer/relaying.ts';
import type { Wallet } from './settlers/relayer/wallet.ts';
import type { MaintainedSettling, SettlesForOthers, SettlingPlace, SettlingProcess } from './settling.ts';
import { createLocalSettling, type LocalSettling } from './settling-local.ts';
import { createRemoteSettling } from './settling-remote.ts';
import { createSwitchedSettling } from './settling-switch.ts';

/** What settlement by this process needs; the same in every process, whether it ever settles or not. */
export interface SettlingParts {
  config: Config;
  chain: ChainClient;
  /** Null where a facilitator settles and no relayer is configured. */
  wallet: Wallet | null;
  check: ChainCheck;
  evidence: Evidence;
  token: TokenWatch;
  gateway: OpenGateway | null;
  ledger: Ledger;
  /** What our relayer has spent, day by day. */
  spending: RelayerSpendingStore;
  relayerMetrics?: RelayerMetrics | undefined;
  /** What became of payments over the Gateway. */
  transfers: GatewayTransferStore;
  /** How facilitators are reached. */
  outgoing: { readonly upstreams: Upstreams; readonly userAgent: string };
  clock: Clock;
  log: {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
    error(detail: object, message: string): void;
  };
}

interface OpenSettlingOptions {
  place: SettlingPlace;
  /** Hears how a row stands that another process settles, when no call of this process waits for it any more. */
  onLeft?: ((id: string, state: Payment['state'] | null) => void) | undefined;
}

/** Opens settlement by this process, by another one, or by the instance that leads. */
export function openSettling(parts: SettlingParts, { place, onLeft }: OpenSettlingOptions): MaintainedSettling {
  const { config, ledger, clock, log } = parts;
  const remoteBy = (process: SettlingProcess) =>
    createRemoteSettling({ ledger, process, clock, waitMs: config.settleWaitMs, onLeft, log });
  switch (place.kind) {
    case 'remote':
      return remoteBy(place.process);
    case 'local': {
      const { living } = place;
      const takeOver = createRecovery({ ledger, living, patienceMs: 0, clock, log });
      return openLocalSettling(parts, { takeOver, isShared: living !== undefined });
    }
    case 'switched': {
      const { process, living, patienceMs, join } = place;
      const takeOver = createRecovery({ ledger, living, patienceMs, clock, log });
      const openLocal = (fencingToken: number) => openLocalSettling(parts, { takeOver, isShared: true, fencingToken });
      return createSwitchedSettling({ remote: remoteBy(process), openLocal, takeOver, join, log });
    }
  }
}

interface LocalTerms {
  takeOver: SettlesForOthers['takeOver'];
  isShared: boolean;
  /** The number of the lease under which this process settles, where several may. */
  fencingToken?: number;
}

/** Settlement by this process: the rails that are on, the work on each row, and what the timer looks after. */
function openLocalSettling(parts: SettlingParts, { takeOver, isShared, fencingToken }: LocalTerms): LocalSettling {
  const { config, token, ledger, clock, log } = parts;
  const noteBroadcast: Ledger['noteBroadcast'] = (entries) => ledger.noteBroadcast(entries, fencingToken);
  const relaying = openRelaying(parts, noteBroadcast);
  const rails = openRails(parts, noteBroadcast, relaying);
  const watch = createRailWatch(rails.probe, clock, log);
  const waitMs = config.settleWaitMs;
  const settlement = createSettlement({ ledger, railOf: rails.of, clock, waitMs, fencingToken, log });
  return createLocalSettling({
    ledger,
    settlement,
    settlers: {
      'usdc-exact': rails.direct.settler,
      ...(rails.gateway && { 'usdc-gateway': rails.gateway.settler }),
    },
    probes: watch.latest,
    detail: () => relaying?.detail() ?? null,
    takeOver,
    isShared,
    load: async () => relaying?.load(),
    /** Rejects with the first that failed, when all have been tried. */
    refresh: async () => {
      const tried = [relaying?.refresh(), token.refresh(), rails.gateway?.batches.round(), watch.refresh()];
      const failed = (await Promise.allSettled(tried)).find((part) => part.status === 'rejected');
      if (failed) throw failed.reason;
    },
    stopSettlers: rails.stop,
  });
}

type Relaying = ReturnType<typeof createRelaying>;

/** Our own relayer; null where a facilitator settles. */
function openRelaying(parts: SettlingParts, noteBroadcast: Ledger['noteBroadcast']): Relaying | null {
  const { config, chain, wallet, check, evidence, token, spending, relayerMetrics: metrics, clock, log } = parts;
  if (!wallet || config.rails.remote) return null;
  return createRelaying({
    ...{ config, chain, wallet, check, evidence, token, noteBroadcast, spending, metrics, clock, log },
  });
}

function openRails(parts: SettlingParts, noteBroadcast: Ledger['noteBroadcast'], relaying: Relaying | null) {
  const { config, gateway, check, evidence, token, transfers, outgoing, clock, log } = parts;
  const { network, seller, publicOrigin } = config;
  return createRails({
    ...{ remote: config.rails.remote, gateway, network, seller, publicOrigin, evidence, check, token, transfers },
    ...outgoing,
    relayer: () => {
      if (!relaying) throw new Error('RELAYER_PRIVATE_KEY is missing');
      return relaying.settler;
    },
    noteBroadcast,
    clock,
    pollMs: config.receiptPollMs,
    waitMs: config.settleWaitMs,
    log,
  });
}
