import type { ChainClient } from '../chain/rpc/client.ts';
import { ranked } from '../chain/rpc/ranked.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import type { LedgerStore, Payment } from '../store/ports/sales.ts';
import type { RelayerSpendingStore } from '../store/ports/spending.ts';
import type { GatewayTransferStore } from '../store/ports/transfers.ts';
import type { Upstreams } from '../upstream/client/http.ts';
import { type Authorization, domainSeparator, neededValidity, paymentKey } from './evm/authorization.ts';
import { createChainCheck } from './evm/chain-check.ts';
import { createEvidence } from './evm/evidence.ts';
import { createSignatureCheck } from './evm/signature.ts';
import { DOMAIN_SEPARATOR_CALLDATA, USDC_DOMAIN } from './evm/token.ts';
import { createTokenWatch } from './evm/token-watch.ts';
import { createFailures } from './failures.ts';
import { createHandover, type SettlingProcess } from './handover.ts';
import { createLedger, type OnMove } from './ledger.ts';
import type { RailProbe } from './open-settlers.ts';
import { createOwnSettling, type OwnSettling } from './open-settling.ts';
import { createPurchase } from './purchase.ts';
import type { PurchaseRail } from './rail.ts';
import { createChainRail } from './rails/usdc-exact/rail.ts';
import { openGateway } from './rails/usdc-gateway/open.ts';
import { isGatewayAccepted } from './rails/usdc-gateway/payload.ts';
import { createGatewayRail } from './rails/usdc-gateway/rail.ts';
import { createRounds } from './rounds.ts';
import { createServe } from './serve.ts';
import { MOST_VALIDITY_SECONDS } from './settlers/facilitator/request.ts';
import type { RelayerMetrics } from './settlers/relayer/metrics.ts';
import { createWallet } from './settlers/relayer/wallet.ts';

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
  /** What became of payments over the Gateway. */
  transfers: GatewayTransferStore;
  /** How facilitators are reached. */
  outgoing: { readonly upstreams: Upstreams; readonly userAgent: string };
  relayerMetrics?: RelayerMetrics | undefined;
  /** Where another process settles, always or unless this one leads: what is not its own it then leaves alone. */
  settling?: SettlingProcess;
  /** For `settling`: told when nobody here waits for a settlement any more. */
  onLeft?: (id: string, state: Payment['state'] | null) => void;
  /** Boot ids of the processes that serve beside this one, where it settles for them. */
  living?: () => readonly string[];
  /** Milliseconds after which a row of a process that is not known to live is taken over; at once by default. */
  patienceMs?: number;
  log: PaymentsLog;
}

interface PaymentsLog {
  info(detail: object, message: string): void;
  warn(detail: object, message: string): void;
  error(detail: object, message: string): void;
}

/** How long a settlement waits at the most for a leader that was not told of it. */
const SWEEP_MS = 1000;

/** The USDC rail, wired: what the gate sells through, with its start, its timer and its end. */
export function createPayments<S>(options: PaymentsOptions<S>) {
  const { config, chain, store, sources, clock, bootId, onMove, log, settling, living } = options;
  const { spending, relayerMetrics, transfers, outgoing, patienceMs = 0 } = options;
  const { usdc, chainId, caip2: network } = config.network;
  const wallet = config.relayerPrivateKey && createWallet(config.relayerPrivateKey, chainId);
  const contract = hexToBytes(usdc);
  const separator = domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, chainId, contract);
  const { storeBytes, keepSeconds, maxDeliveries } = config.replies;
  const maxOpen = config.maxOpenPayments;
  const limits = { storeBytes, sharedBy: config.workers, keepSeconds, maxDeliveries, maxOpen };
  const ledger = createLedger({ store, clock, bootId, ...limits, ...(onMove && { onMove }) });
  const evidence = createEvidence(chain, usdc);
  // Payments are tried out as what settles them will send them: by the facilitator's address where it tells one, else by ours.
  const sender = (): `0x${string}` =>
    (config.rails.remote ? told().probes().facilitator?.sender : wallet?.address) ?? config.seller;
  const check = createChainCheck(chain, usdc, sender, clock);
  const token = createTokenWatch({ chain, usdc, payTo: config.seller, sender, clock, log });
  const opened = { network: config.network, publicOrigin: config.publicOrigin, upstreams: outgoing.upstreams, clock };
  const gateway = config.rails.gateway && openGateway(config.rails.gateway, opened);
  const waitMs = config.settleWaitMs;
  const handover =
    settling && createHandover({ ledger, settling, clock, waitMs, ...(options.onLeft && { onLeft: options.onLeft }) });
  const openSettling = (fence?: number) =>
    createOwnSettling({
      ...{ config, chain: ranked(chain, 'settle'), wallet, check, evidence, token, gateway, ledger, fence },
      ...{ spending, relayerMetrics, transfers, outgoing, clock, log },
    });
  // One of the two at least: who settles here has no other process to hand to, or leads among those that have.
  let own: OwnSettling | null = handover ? null : openSettling();
  const others = settling && tellOf(settling);
  const told = () => own ?? (others as NonNullable<typeof others>);
  const settler: PurchaseRail['settler'] = {
    unavailable: () => told().settler.unavailable(),
    refuses: (payer) => told().settler.refuses?.(payer) ?? null,
    refusesCode: () => told().settler.refusesCode?.() ?? null,
  };
  const gatewayUnavailable = () => told().gatewayUnavailable();
  const settlement = () => own?.settlement ?? (handover as NonNullable<typeof handover>);
  const hasPaid = (authorization: Authorization) => ledger.hasSettled(paymentKey(authorization, network, contract));
  const checkSignature = createSignatureCheck({ check, separator, settler, hasPaid, clock });
  const validity = { least: neededValidity(config), most: MOST_VALIDITY_SECONDS };
  const rail = { ledger, network, clock };
  const direct = createChainRail({ ...rail, check, evidence, settler, checkSignature, validity, usdc });
  const batched =
    gateway && createGatewayRail({ ...rail, gateway, settler: { unavailable: gatewayUnavailable }, times: config });
  const { handlerTimeoutMs } = config;
  const { purchase, isServed } = createPurchase<S>({
    ledger,
    settlement: {
      settle: (intent, contract) => settlement().settle(intent, contract),
      resume: (payment) => settlement().resume(payment),
    },
    railFor: (accepted) => (batched && isGatewayAccepted(accepted) ? batched : direct),
    failures: createFailures(config.failureLimits, clock),
    serve: createServe({ ledger, sources, handlerTimeoutMs }),
    sources,
    clock,
    network,
    log,
  });
  let timer: NodeJS.Timeout | null = null;
  let sweeping: NodeJS.Timeout | null = null;
  let ending: Promise<unknown> = Promise.resolve();
  // Each by itself: a long reconciliation must not keep the relayer's purse from being watched.
  const looking = createRounds(() => own?.refresh(), log);
  const reconciling = createRounds(
    () => (own ? reconcile(own) : handover?.tidy(({ id, bootId: holder }) => holder !== bootId || isServed(id))),
    log,
  );

  // A word that asks for a settlement may be lost, and the one who was asked may have led no more: the rows are what counts.
  const sweep = createRounds(() => own?.carrier.carryWaiting(), log);

  const upkeep = (): Promise<unknown> => Promise.all([looking(), reconciling()]);

  async function reconcile({ settlement }: OwnSettling): Promise<void> {
    if (living) await takeOver();
    // Whoever serves a row has it until a transaction is noted for it, or nobody knows how it stands: from then on the row is in the hands of
    // who settles. Where another process settled before this one, nobody else goes on with it, though its buyer may wait at this very process.
    await settlement.reconcile(
      ({ id, bootId: holder, state, transaction }) =>
        state !== 'unknown' && transaction === null && (holder !== bootId || isServed(id)),
    );
  }

  /** Takes over what dead processes left: those of `dead` at once, those that nobody knows after a while, since they may be about to be known. */
  async function takeOver(dead: readonly string[] = []): Promise<void> {
    const isGone = ({ bootId: holder, reservedAt }: Payment) =>
      dead.includes(holder) || reservedAt <= clock.nowMs() - patienceMs;
    const left = await ledger.recover(living, isGone);
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
    carrier: () => own?.carrier ?? null,
    takeOver,
    /** Settles from here on, for all who hand over; `fence` is the lease under which it does. Returns before the first round is over. */
    lead: async (fence: number): Promise<void> => {
      const opened = openSettling(fence);
      own = opened;
      await opened.load();
      if (own !== opened) return;
      void upkeep();
      sweeping = setInterval(sweep, SWEEP_MS);
    },
    /** Hands over from here on. What is under way ends in the background, at the latest as unknown. */
    follow: (): void => {
      if (sweeping) clearInterval(sweeping);
      ending = Promise.all([ending, own?.stop()]);
      own = null;
    },
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
      const { probes, detail } = told();
      return {
        ledger: await checked(ledger.ping),
        usdc: await checked(async () => {
          if (!(await domainMatches())) throw new Error('the USDC contract has another EIP-712 domain');
        }),
        settlement: settlementState(settler.unavailable(), detail()),
        ...railChecks(probes(), config.rails),
      };
    },
    stop: async () => {
      if (timer) clearInterval(timer);
      if (sweeping) clearInterval(sweeping);
      await Promise.all([own?.stop(), ending]);
      await Promise.all([looking.idle(), reconciling.idle(), sweep.idle()]);
    },
  };
}

export type Payments = ReturnType<typeof createPayments<object>>;

/** What a process that only serves has been told by the one that settles, in the same words. */
function tellOf(settling: SettlingProcess): Pick<OwnSettling, 'settler' | 'gatewayUnavailable' | 'probes' | 'detail'> {
  const { gatewayUnavailable, rails: probes } = settling;
  return { settler: settling, gatewayUnavailable, probes, detail: () => null };
}

/** A facilitator that does not settle for us ends the sales; the Gateway is one way among two, and only told of. */
function railChecks(probes: Readonly<Record<string, RailProbe>>, { remote, gateway }: Config['rails']) {
  const unasked = { ok: false, detail: 'not asked yet' };
  return {
    ...(remote && { facilitator: withoutSender(probes.facilitator ?? unasked) }),
    ...(gateway && { gateway: onlyTold(probes.gateway ?? unasked) }),
  };
}

/** What `/readyz` shows of a rail: the sender's address is for trying payments out alone. */
function withoutSender({ ok, detail }: RailProbe): RailProbe {
  return { ok, ...(detail !== undefined && { detail }) };
}

function onlyTold({ ok, detail }: RailProbe): RailProbe {
  return ok ? { ok } : { ok: true, detail: `not offered well: ${detail}` };
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
