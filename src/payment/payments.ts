import type { ChainClient } from '../chain/client.ts';
import { createHeads } from '../chain/heads.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import type { LedgerStore } from '../store/ledger-port.ts';
import { createLedger, type OnMove } from './ledger.ts';
import { createPayerFailures } from './payer-failures.ts';
import { createPurchase } from './purchase.ts';
import { createServe } from './serve.ts';
import { domainSeparator } from './usdc/authorization.ts';
import { createChainCheck } from './usdc/chain-check.ts';
import { createEvidence } from './usdc/evidence.ts';
import { createGasWatch } from './usdc/gas-watch.ts';
import { createRelayer } from './usdc/relayer.ts';
import { createSettlement } from './usdc/settlement.ts';
import { createSignatureCheck } from './usdc/signature.ts';
import { DOMAIN_SEPARATOR_CALLDATA, USDC_DOMAIN } from './usdc/token.ts';
import { createWallet } from './usdc/wallet.ts';

interface PaymentsOptions<S> {
  config: Config;
  chain: ChainClient;
  store: LedgerStore;
  sources: S;
  clock: Clock;
  bootId: string;
  onMove?: OnMove;
  log: {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
    error(detail: object, message: string): void;
  };
}

/** The USDC rail, wired: what the gate sells through, with its start, its timer and its end. */
export function createPayments<S>(options: PaymentsOptions<S>) {
  const { config, chain, store, sources, clock, bootId, onMove, log } = options;
  const { usdc, chainId, caip2: network } = config.network;
  const wallet = createWallet(config.relayerPrivateKey, chainId);
  const separator = domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, chainId, hexToBytes(usdc));
  const { storeBytes, keepSeconds, maxDeliveries } = config.replies;
  const maxOpen = config.payerLimits.open;
  const limits = { storeBytes, keepSeconds, maxDeliveries, maxOpen };
  const ledger = createLedger({ store, clock, bootId, ...limits, ...(onMove && { onMove }) });
  const evidence = createEvidence(chain, usdc);
  const check = createChainCheck(chain, usdc, wallet.address);
  const gas = createGasWatch(chain, wallet.address);
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
    onMined: () => {},
  });
  const settler = { ...relayer, unavailable: () => relayer.unavailable() ?? gas.shortage() };
  const settlement = createSettlement({ ledger, settler, evidence, clock, waitMs: config.settleWaitMs, log });
  const { handlerTimeoutMs } = config;
  const { purchase, isServed } = createPurchase<S>({
    ledger,
    settlement,
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
    upkeeping ??= Promise.all([gas.refresh(), settlement.reconcile(isServed)])
      .then(() => {})
      .catch((error) => log.warn({ err: error }, 'upkeep failed'))
      .finally(() => {
        upkeeping = null;
      });
    return upkeeping;
  }

  async function domainMatches(): Promise<boolean> {
    const call = { to: usdc, data: DOMAIN_SEPARATOR_CALLDATA };
    return (await chain.request<string>('eth_call', [call, 'latest'])) === bytesToHex(separator);
  }

  return {
    purchase,
    ledger,
    /** Takes over what a dead process left, before the first request is served. */
    start: async () => {
      const left = await ledger.recover();
      if (left.released + left.unknown > 0) log.warn(left, 'took over payments of a process that died');
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
        settlement: shortage === null ? { ok: true } : { ok: false, detail: shortage },
      };
    },
    stop: async () => {
      if (timer) clearInterval(timer);
      await relayer.stop();
      heads.close();
      await settlement.idle();
      await upkeeping;
    },
  };
}

async function checked(look: () => Promise<void>): Promise<{ ok: boolean; detail?: string }> {
  try {
    await look();
    return { ok: true };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : 'failed' };
  }
}
