import type { ChainClient } from '../../../chain/rpc/client.ts';
import { createHeads } from '../../../chain/rpc/heads.ts';
import type { Config } from '../../../config.ts';
import { allTried } from '../../../lib/all-tried.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { RelayerSpendingStore } from '../../../store/ports/spending.ts';
import type { Relaying } from '../../settler.ts';
import type { ChainCheck } from '../../usdc/checks.ts';
import type { Evidence } from '../../usdc/evidence.ts';
import type { TokenWatch } from '../../usdc/token-watch.ts';
import { createGasBudget } from './gas-budget.ts';
import { createGasWatch } from './gas-watch.ts';
import type { RelayerMetrics } from './metrics.ts';
import { createRelayer, type RelayerOptions } from './relayer.ts';
import type { Wallet } from './wallet.ts';

/** What our relayer is opened with. */
export interface RelayingOptions {
  config: Pick<Config, 'network' | 'collector' | 'relayer' | 'receiptPollMs' | 'settleWaitMs'>;
  token: TokenWatch;
  chain: ChainClient;
  wallet: Wallet;
  check: ChainCheck;
  evidence: Evidence;
  noteBroadcast: RelayerOptions['noteBroadcast'];
  /** What our relayer has spent, day by day. */
  spending: RelayerSpendingStore;
  /** Reads what the payments over the relayer brought in this UTC day, in USDC base units. */
  incomeToday: () => Promise<bigint>;
  metrics?: RelayerMetrics | undefined;
  clock: Clock;
  log: {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
    error(detail: object, message: string): void;
  };
}

/** Opens our relayer with its source of heads, its gas watch and its gas budget. Its settler may be stopped more than once. */
export function createRelaying(options: RelayingOptions): Relaying {
  const { config, chain, wallet, check, evidence, token, noteBroadcast, metrics, clock, log } = options;
  const gas = createGasWatch({ chain, relayer: wallet.address, onReading: metrics?.read, log });
  const { dailyGas: daily, dailyFailuresWei } = config.relayer;
  const { spending: store, incomeToday } = options;
  const budget = createGasBudget({ store, clock, daily, incomeToday, dailyFailuresWei, log });
  metrics?.watchBudget(budget);
  const heads = createHeads(config.collector.wsUrls, log);
  const relayer = createRelayer({
    chain,
    check,
    usdc: config.network.usdc,
    wallet,
    evidence,
    token,
    isCareful: () => budget.refusesCode() !== null,
    clock,
    noteBroadcast,
    log,
    pollMs: config.receiptPollMs,
    batchWindowMs: config.relayer.batchWindowMs,
    blockSharePercent: config.relayer.blockSharePercent,
    stallMs: config.settleWaitMs,
    onHead: heads.listen,
    onMined: (cost, rails) => {
      budget.note(cost);
      metrics?.mined(cost, rails);
    },
  });
  const cannotSend = () => relayer.unavailable() ?? token.refusal() ?? gas.shortage(relayer.expectedWei());
  let stopped: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    await relayer.stop();
    heads.close();
  };
  const settler = {
    ...relayer,
    unavailable: () => cannotSend() ?? budget.refusal(relayer.expectedWei()),
    cannotSend,
    refusesCode: budget.refusesCode,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
  const refresh = () => allTried([gas.refresh(relayer.expectedWei()), budget.refresh(relayer.expectedWei())]);
  return { settler, operate: relayer.operate, load: budget.load, refresh, detail: gas.detail };
}
