import type { ChainClient } from '../chain/client.ts';
import { createHeads } from '../chain/heads.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import type { LedgerStore, Payment } from '../store/ledger-port.ts';
import type { RelayerSpendingStore } from '../store/relayer-spending.ts';
import { createLedger, type Ledger, type OnMove } from './ledger.ts';
import { createPayerFailures } from './payer-failures.ts';
import { createPurchase } from './purchase.ts';
import { createServe } from './serve.ts';
import { domainSeparator } from './usdc/authorization.ts';
import { createCarrier } from './usdc/carrier.ts';
import { type ChainCheck, createChainCheck } from './usdc/chain-check.ts';
import { createEvidence, type Evidence } from './usdc/evidence.ts';
import { createGasBudget } from './usdc/gas-budget.ts';
import { createGasWatch } from './usdc/gas-watch.ts';
import { createHandover, type SettlingProcess } from './usdc/handover.ts';
import { createRelayer } from './usdc/relayer.ts';
import type { RelayerMetrics } from './usdc/relayer-metrics.ts';
import { createSettlement } from './usdc/settlement.ts';
import { createSignatureCheck } from './usdc/signature.ts';
import { DOMAIN_SEPARATOR_CALLDATA, USDC_DOMAIN } from './usdc/token.ts';
import { createWallet, type Wallet } from './usdc/wallet.ts';

interface PaymentsOptions<S> {
  config: Config;
  chain: ChainClient;
  store: LedgerStore;
  sources: S;
  clock: Clock;
  bootId: string;
  onMove?: OnMove;
  /** What our relayer has spent, day by day. */
  spending: RelayerSpendingStore;
  relayerMetrics?: RelayerMetrics | undefined;
  /** Where another process settles: this one then leaves what is not its own alone. */
  settling?: SettlingProcess;
  /** For `settling`: told when nobody here waits for a settlement any more. */
  onLeft?: (id: string, state: Payment['state'] | null) => void;
  /** Boot ids of the processes that serve beside this one, where it settles for them. */
  living?: () => readonly string[];
  log: PaymentsLog;
}

interface PaymentsLog {
  info(detail: object, message: string): void;
  warn(detail: object, message: string): void;
  error(detail: object, message: string): void;
}

/** The USDC rail, wired: what the gate sells through, with its start, its timer and its end. */
export function createPayments<S>(options: PaymentsOptions<S>) {
  const { config, chain, store, sources, clock, bootId, onMove, log, settling, living } = options;
  const { spending, relayerMetrics } = options;
  const { usdc, chainId, caip2: network } = config.network;
  const wallet = createWallet(config.relayerPrivateKey, chainId);
  const separator = domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, chainId, hexToBytes(usdc));
  const { storeBytes, keepSeconds, maxDeliveries } = config.replies;
  const maxOpen = config.payerLimits.open;
  const limits = { storeBytes, sharedBy: config.workers, keepSeconds, maxDeliveries, maxOpen };
  const ledger = createLedger({ store, clock, bootId, ...limits, ...(onMove && { onMove }) });
  const evidence = createEvidence(chain, usdc);
  const check = createChainCheck(chain, usdc, wallet.address);
  const waitMs = config.settleWaitMs;
  const handover =
    settling && createHandover({ ledger, settling, clock, waitMs, ...(options.onLeft && { onLeft: options.onLeft }) });
  const own = handover
    ? null
    : createOwnSettling({
        ...{ config, chain, spending, relayerMetrics },
        ledger,
        evidence,
        check,
        wallet,
        clock,
        log,
      });
  const settler = own?.settler ?? (settling as SettlingProcess);
  const { handlerTimeoutMs } = config;
  const { purchase, isServed } = createPurchase<S>({
    ledger,
    settlement: own?.settlement ?? (handover as NonNullable<typeof handover>),
    settler,
    failures: createPayerFailures(config.payerLimits.failuresPerMinute, clock),
    serve: createServe({ ledger, check, evidence, sources, network, usdc, handlerTimeoutMs }),
    sources,
    checkSignature: createSignatureCheck(check, separator),
    clock,
    network,
    usdc,
    log,
  });
  let timer: NodeJS.Timeout | null = null;
  let upkeeping: Promise<void> | null = null;

  /** One round of upkeep at a time; a chain or disk that is away is said, and tried again at the next. */
  function upkeep(): Promise<void> {
    upkeeping ??= round()
      .catch((error) => log.warn({ err: error }, 'upkeep failed'))
      .finally(() => {
        upkeeping = null;
      });
    return upkeeping;
  }

  async function round(): Promise<void> {
    if (handover) return handover.tidy(({ id, bootId: holder }) => holder !== bootId || isServed(id));
    await Promise.all([own?.refreshGas(), reconcile()]);
  }

  async function reconcile(): Promise<void> {
    if (living) await takeOver();
    // What a living process serves is its own until it says that nobody waits for it any more.
    await own?.settlement.reconcile(
      ({ id, bootId: holder, state }) => isServed(id) || (state !== 'unknown' && (living?.() ?? []).includes(holder)),
    );
  }

  /** Takes over what dead processes left. */
  async function takeOver(): Promise<void> {
    const left = await ledger.recover(living?.() ?? []);
    if (left.released + left.unknown > 0) log.warn(left, 'took over payments of a process that died');
  }

  async function domainMatches(): Promise<boolean> {
    const call = { to: usdc, data: DOMAIN_SEPARATOR_CALLDATA };
    return (await chain.request<string>('eth_call', [call, 'latest'])) === bytesToHex(separator);
  }

  return {
    purchase,
    ledger,
    /** For the processes that serve beside this one; null in one of those. */
    carrier: own && createCarrier({ ledger, settlement: own.settlement, settler }),
    takeOver,
    /** Takes over what a dead process left, before the first request is served. */
    start: async () => {
      if (handover) await upkeep();
      else await takeOver();
      await own?.load();
      // Not waited for: a chain that is slow must not keep the free routes from being served.
      void upkeep();
      timer = setInterval(upkeep, config.reconcileIntervalMs);
    },
    /** Whether payments can be taken: the ledger answers, the chain is the right one and its USDC signs under our domain, gas is there. */
    readiness: async () => {
      const shortage = settler.unavailable();
      return {
        ledger: await checked(ledger.ping),
        usdc: await checked(async () => {
          if (!(await domainMatches())) throw new Error('the USDC contract has another EIP-712 domain');
        }),
        settlement: settlementState(shortage, own?.gasDetail() ?? null),
      };
    },
    stop: async () => {
      if (timer) clearInterval(timer);
      await own?.stop();
      await upkeeping;
    },
  };
}

interface OwnSettlingParts {
  config: Config;
  chain: ChainClient;
  spending: RelayerSpendingStore;
  relayerMetrics: RelayerMetrics | undefined;
  ledger: Ledger;
  evidence: Evidence;
  check: ChainCheck;
  wallet: Wallet;
  clock: Clock;
  log: PaymentsLog;
}

/** Settlement by this process: our relayer, what it learns heads and its gas from, and the work on each row. */
function createOwnSettling(parts: OwnSettlingParts) {
  const { config, chain, spending, relayerMetrics, ledger, evidence, check, wallet, clock, log } = parts;
  const { usdc } = config.network;
  const gas = createGasWatch(chain, wallet.address, relayerMetrics?.read);
  const budget = createGasBudget({ store: spending, clock, dailyWei: config.relayer.dailyGasWei, log });
  relayerMetrics?.watchBudget(budget);
  const { noteBroadcast } = ledger;
  const heads = createHeads(config.collector.wsUrls, log);
  const relayer = createRelayer({
    chain,
    check,
    usdc,
    wallet,
    evidence,
    clock,
    noteBroadcast,
    log,
    pollMs: config.receiptPollMs,
    gatherMs: config.relayer.gatherMs,
    blockSharePercent: config.relayer.blockSharePercent,
    stallMs: config.settleWaitMs,
    onHead: heads.listen,
    onMined: (cost) => {
      budget.note(cost);
      relayerMetrics?.mined(cost);
    },
  });
  const unaffordable = () => gas.shortage(relayer.expectedWei()) ?? budget.refusal(relayer.expectedWei());
  const settler = { ...relayer, unavailable: () => relayer.unavailable() ?? unaffordable() };
  const settlement = createSettlement({ ledger, settler, evidence, clock, waitMs: config.settleWaitMs, log });
  return {
    settler,
    settlement,
    refreshGas: gas.refresh,
    gasDetail: gas.detail,
    load: budget.load,
    stop: async () => {
      await relayer.stop();
      heads.close();
      await settlement.idle();
    },
  };
}

function settlementState(shortage: string | null, detail: string | null): { ok: boolean; detail?: string } {
  const told = shortage ?? detail;
  return { ok: shortage === null, ...(told === null ? {} : { detail: told }) };
}

async function checked(look: () => Promise<void>): Promise<{ ok: boolean; detail?: string }> {
  try {
    await look();
    return { ok: true };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : 'failed' };
  }
}
