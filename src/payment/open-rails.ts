import { ranked } from '../chain/rpc/ranked.ts';
import { hexToBytes } from '../lib/hex.ts';
import type { LedgerStore, Payment } from '../store/ports/sales.ts';
import { type Authorization, paymentKey } from './authorization.ts';
import { createChainCheck } from './evm/chain-check.ts';
import { domainSeparator, neededValidity } from './evm/eip3009.ts';
import { createEvidence } from './evm/evidence.ts';
import { createSignatureCheck } from './evm/signature.ts';
import { USDC_DOMAIN } from './evm/token.ts';
import { createTokenWatch } from './evm/token-watch.ts';
import { createFailures } from './failures.ts';
import { createLedger, type OnMove } from './ledger.ts';
import { createMaintenance } from './maintenance.ts';
import { createPaymentsReadiness } from './open-readiness.ts';
import { openSettling, type SettlingParts } from './open-settling.ts';
import { createPurchase } from './purchase.ts';
import { createChainRail } from './rails/usdc-exact/rail.ts';
import { openGateway } from './rails/usdc-gateway/open.ts';
import { isGatewayAccepted } from './rails/usdc-gateway/payload.ts';
import { createGatewayRail } from './rails/usdc-gateway/rail.ts';
import { createServe } from './serve.ts';
import { MOST_VALIDITY_SECONDS } from './settlers/facilitator/request.ts';
import { createWallet } from './settlers/relayer/wallet.ts';
import type {
  MaintainedSettling,
  RailName,
  RailProbes,
  RailStatus,
  SettlesForOthers,
  Settling,
  SettlingPlace,
} from './settling.ts';

interface PaymentsOptions<S>
  extends Pick<
    SettlingParts,
    'config' | 'chain' | 'spending' | 'transfers' | 'outgoing' | 'relayerMetrics' | 'clock' | 'log'
  > {
  store: LedgerStore;
  sources: S;
  bootId: string;
  onMove?: OnMove;
  /** Where payments are settled: by this process alone, by default. */
  place?: SettlingPlace;
  /** Hears how a row stands that another process settles, when no call of this process waits for it any more. */
  onLeft?: (id: string, state: Payment['state'] | null) => void;
}

/** The USDC rails, wired: what the gate sells through, with its start, its timer and its end. */
export function createPayments<S>(options: PaymentsOptions<S>) {
  const { config, bootId, place = { kind: 'local' }, onLeft, log } = options;
  const parts = openParts(options, () => settling.probes());
  const settling: MaintainedSettling = openSettling(parts, { place, onLeft });
  const { purchase, isServed } = openPurchase(options, parts, settling);
  const maintenance = createMaintenance({
    settling,
    isInUse: ({ id, bootId: holder }) => holder !== bootId || isServed(id),
    intervalMs: config.reconcileIntervalMs,
    log,
  });
  const forOthers: SettlesForOthers = settling;
  return {
    purchase,
    ledger: parts.ledger,
    /** What this process does for those that serve beside it. */
    forOthers,
    readiness: createPaymentsReadiness({ config, chain: options.chain, ledger: parts.ledger, settling }),
    ...maintenance,
  };
}

export type Payments = ReturnType<typeof createPayments<object>>;

/** What selling and settling share. `probes` tells of the remote services. */
function openParts<S>(options: PaymentsOptions<S>, probes: () => RailProbes): SettlingParts {
  const { config, chain, store, clock, bootId, onMove, log, spending, relayerMetrics, transfers, outgoing } = options;
  const { usdc, chainId } = config.network;
  const wallet = config.relayerPrivateKey && createWallet(config.relayerPrivateKey, chainId);
  const { storeBytes, keepSeconds, maxDeliveries } = config.replies;
  const maxOpen = config.maxOpenPayments;
  const limits = { storeBytes, sharedBy: config.workers, keepSeconds, maxDeliveries, maxOpen };
  const ledger = createLedger({ store, clock, bootId, ...limits, ...(onMove && { onMove }) });
  const evidence = createEvidence(chain, usdc);
  // Payments are tried out as what settles them will send them: by the facilitator's address where it names one, else by ours.
  const sender = (): `0x${string}` =>
    (config.rails.remote ? probes().facilitator?.sender : wallet?.address) ?? config.seller;
  const check = createChainCheck(chain, usdc, sender, clock);
  const token = createTokenWatch({ chain, usdc, payTo: config.seller, sender, clock, log });
  const opened = { network: config.network, publicOrigin: config.publicOrigin, upstreams: outgoing.upstreams, clock };
  const gateway = config.rails.gateway && openGateway(config.rails.gateway, opened);
  return {
    ...{ config, chain: ranked(chain, 'settle'), wallet, check, evidence, token, gateway, ledger },
    ...{ spending, relayerMetrics, transfers, outgoing, clock, log },
  };
}

function openPurchase<S>(options: PaymentsOptions<S>, parts: SettlingParts, settling: Settling) {
  const { config, sources, clock, log } = options;
  const { ledger, check, evidence, gateway } = parts;
  const { usdc, chainId, caip2: network } = config.network;
  const contract = hexToBytes(usdc);
  const separator = domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, chainId, contract);
  const settler = statusNow(settling, 'usdc-exact');
  const { unavailable } = statusNow(settling, 'usdc-gateway');
  const hasPaid = (authorization: Authorization) => ledger.hasSettled(paymentKey(authorization, network, contract));
  const checkSignature = createSignatureCheck({ check, separator, settler, hasPaid, clock });
  const validity = { least: neededValidity(config), most: MOST_VALIDITY_SECONDS };
  const rail = { ledger, network, clock };
  const direct = createChainRail({ ...rail, check, evidence, settler, checkSignature, validity, usdc });
  const batched = gateway && createGatewayRail({ ...rail, gateway, settler: { unavailable }, times: config });
  const { handlerTimeoutMs } = config;
  return createPurchase<S>({
    ledger,
    settlement: settling,
    railFor: (accepted) => (batched && isGatewayAccepted(accepted) ? batched : direct),
    failures: createFailures(config.failureLimits, clock),
    serve: createServe({ ledger, sources, handlerTimeoutMs }),
    sources,
    clock,
    network,
    log,
  });
}

/** A rail's status, asked for anew by each call, because the process that settles may change. */
function statusNow(settling: Settling, rail: RailName): RailStatus {
  return {
    unavailable: () => settling.status(rail).unavailable(),
    refuses: (payer) => settling.status(rail).refuses(payer),
    refusesCode: () => settling.status(rail).refusesCode(),
  };
}
