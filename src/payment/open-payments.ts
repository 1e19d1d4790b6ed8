import { ranked } from '../chain/rpc/ranked.ts';
import { allTried } from '../lib/all-tried.ts';
import type { BookStore } from '../store/ports/books.ts';
import type { ChannelStore } from '../store/ports/channels.ts';
import type { LedgerStore, Payment } from '../store/ports/sales.ts';
import type { CountedSurplus } from './books.ts';
import { createFailures } from './failures.ts';
import { createLedger, type OnMove } from './ledger.ts';
import { createMaintenance } from './maintenance.ts';
import { createMismatchWatch, type MismatchWatch } from './mismatch.ts';
import { openBooks } from './open-books.ts';
import { balanceContracts, openRails, RAILS, type RailKit, type RailList } from './open-rails.ts';
import { createPaymentsReadiness } from './open-readiness.ts';
import { openSettling, type SettlingParts } from './open-settling.ts';
import { createPurchase } from './purchase.ts';
import type { OpenRail, RailFor, RailName } from './rail.ts';
import { createWallet } from './relayer/transactions.ts';
import { createServe } from './serve.ts';
import {
  type MaintainedSettling,
  type RailProbes,
  type RailStatus,
  type SettlesForOthers,
  type Settling,
  type SettlingPlace,
  sharersOf,
} from './settling.ts';
import { createUnknownPayments } from './unknown-payments.ts';
import { createChainCheck, createContractBudget } from './usdc/checks.ts';
import { createEvidence } from './usdc/evidence.ts';
import { createTokenWatch } from './usdc/token-watch.ts';

interface PaymentsOptions<S>
  extends Pick<
    RailKit,
    'config' | 'chain' | 'spending' | 'settled' | 'metrics' | 'transfers' | 'outgoing' | 'clock' | 'log'
  > {
  store: LedgerStore;
  channels: ChannelStore;
  /** The books against the chain. Without them nothing is compared, and no difference stops a rail. */
  books?: BookStore;
  /** Counts what came in beyond the ledger, for the metrics. */
  onSurplus?: (surplus: CountedSurplus) => void;
  sources: S;
  bootId: string;
  /** The rails that may be opened: by default all. */
  railList?: RailList;
  onMove?: OnMove;
  /** Which process settles the payments. By default this one, without others beside it. */
  place?: SettlingPlace | undefined;
  /** Called with the state of a row that another process settles, once no call of this process waits for that row. */
  onLeft?: (id: string, state: Payment['state'] | null) => void;
}

/** Composes the USDC rails: the purchase that the gate calls, and its start, maintenance and stop. */
export function createPayments<S>(options: PaymentsOptions<S>) {
  const { config, bootId, railList = RAILS, place = { kind: 'local' }, onLeft, log } = options;
  const kit = openKit(options, () => settling.probes());
  const mismatch = watchMismatch(options);
  const status = (name: RailName) => statusNow(() => settling, name, options.chain.agreed.whyUnconfirmed, mismatch);
  const rails = openRails(kit, status, railList);
  const settling: MaintainedSettling = openSettling(
    { ...kit, rails, openBooks: bookOpener(options) },
    { place, onLeft },
  );
  const { purchase, isServed } = openPurchase(options, kit, { rails, settling });
  const maintenance = createMaintenance({
    settling: mismatch ? watched(settling, mismatch) : settling,
    isInUse: ({ id, bootId: holder }) => holder !== bootId || isServed(id),
    intervalMs: config.reconcileIntervalMs,
    log,
  });
  const forOthers: SettlesForOthers = settling;
  return {
    purchase,
    ledger: kit.ledger,
    /** The last probes of the rails' services. */
    probes: settling.probes,
    /** What this process does for the other processes of the service. */
    forOthers,
    readiness: createPaymentsReadiness({
      config,
      chain: options.chain,
      ledger: kit.ledger,
      settling: {
        ...settling,
        status: (name) =>
          statusNow(
            () => settling,
            name,
            () => null,
            mismatch,
          ),
      },
      railList,
    }),
    ...maintenance,
  };
}

export type Payments = ReturnType<typeof createPayments<object>>;

function watchMismatch<S>({ books, config, log }: PaymentsOptions<S>): MismatchWatch | null {
  const { network, ledger } = config;
  return books
    ? createMismatchWatch({ store: books, network: network.caip2, stopsBeyond: ledger.mismatchStopsBeyond, log })
    : null;
}

function bookOpener<S>(options: PaymentsOptions<S>): SettlingParts['openBooks'] {
  const { books } = options;
  return books && ((rails) => openBooks({ ...options, books }, rails));
}

/** Settlement whose maintenance also reads what the chain lacks: before the first sale, and in each round. */
function watched(settling: MaintainedSettling, mismatch: MismatchWatch): MaintainedSettling {
  return {
    ...settling,
    start: async (maintain) => {
      await mismatch.refresh();
      await settling.start(maintain);
    },
    refresh: () => allTried([settling.refresh(), mismatch.refresh()]),
  };
}

/** What selling and settling share. `probes` reports the remote services. */
function openKit<S>(options: PaymentsOptions<S>, probes: () => RailProbes): RailKit {
  const {
    config,
    chain,
    store,
    clock,
    bootId,
    onMove,
    log,
    spending,
    settled,
    metrics,
    transfers,
    outgoing,
    channels,
    railList,
    place,
  } = options;
  const { usdc, chainId } = config.network;
  const wallet = config.relayerPrivateKey && createWallet(config.relayerPrivateKey, chainId);
  const { storeBytes, keepSeconds, maxDeliveries } = config.replies;
  const maxOpen = config.maxOpenPayments;
  const limits = { storeBytes, sharedBy: sharersOf(place), keepSeconds, maxDeliveries, maxOpen };
  const ledger = createLedger({ store, channels, clock, bootId, ...limits, ...(onMove && { onMove }) });
  const evidence = createEvidence(chain, usdc);
  // Simulations use the address that will send the settlement: the facilitator's where it names one, else the relayer's, else the seller's.
  const sender = (): `0x${string}` =>
    (config.rails.remote ? probes().facilitator?.sender : wallet?.address) ?? config.seller;
  const check = createChainCheck(chain, usdc, sender, clock);
  const token = createTokenWatch({ chain, usdc, payTo: config.seller, sender, clock, log });
  return {
    config,
    chain: ranked(chain, 'settle'),
    wallet,
    check,
    contracts: createContractBudget(clock),
    evidence,
    token,
    ledger,
    channels,
    spending,
    settled,
    metrics,
    transfers,
    outgoing,
    clock,
    log,
    balanceContracts: balanceContracts(config, railList),
  };
}

interface Opened {
  rails: readonly OpenRail[];
  settling: Settling;
}

function openPurchase<S>(options: PaymentsOptions<S>, { ledger }: RailKit, { rails, settling }: Opened) {
  const { config, sources, clock, log } = options;
  const { handlerTimeoutMs } = config;
  return createPurchase<S>({
    ledger,
    settlement: settling,
    railFor: railAmong(rails),
    failures: createFailures(config.failureLimits, clock),
    unknown: createUnknownPayments({ ledger, limits: config.unknownLimits, clock }),
    serve: createServe({ ledger, sources, handlerTimeoutMs }),
    sources,
    handlerTimeoutMs,
    clock,
    network: config.network.caip2,
    log,
  });
}

/** The rail that recognises a payment's terms. Without one, the first rail, whose checks say what is wrong with them. */
function railAmong([first, ...others]: readonly OpenRail[]): RailFor {
  if (!first) throw new Error('no rail is on');
  return (accepted) => (others.find(({ recognises }) => recognises(accepted)) ?? first).purchase;
}

/**
 * A rail's status. Each call reads it again, because another process may settle by then. Money that the chain lacks
 * stops the rail in every process.
 */
function statusNow(
  settling: () => Settling,
  rail: RailName,
  whyUnconfirmed: () => string | null,
  mismatch: MismatchWatch | null,
): RailStatus {
  const status = () => settling().status(rail);
  // Without two providers nobody could confirm that a payment moved money.
  const stopsSales = () => whyUnconfirmed() ?? mismatch?.why(rail) ?? null;
  return {
    stopsSales,
    unavailable: () => status().unavailable() ?? stopsSales(),
    cannotSend: () => status().cannotSend(),
    refuses: (payer) => status().refuses(payer),
    refusesCode: () => status().refusesCode(),
  };
}
