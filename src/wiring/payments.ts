import { ranked } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import { hexToBytes } from '../lib/hex.ts';
import { allTried } from '../lib/tasks.ts';
import { formatUnits, USDC_DECIMALS } from '../lib/units.ts';
import {
  type BookRail,
  type Books,
  type CountedSurplus,
  createBooks,
  createMismatchWatch,
  type MismatchWatch,
} from '../payment/books.ts';
import type { RailFor } from '../payment/checkout.ts';
import { createSettledToday } from '../payment/history.ts';
import { createLedger, type Ledger, type OnMove } from '../payment/ledger.ts';
import { createFailures, createUnknownPayments } from '../payment/limits.ts';
import type { TimeSales } from '../payment/metrics.ts';
import type { RailName, UsdcRail } from '../payment/rail.ts';
import { type OpenRelayer, openRelayer } from '../payment/relayer/relayer.ts';
import { createWallet } from '../payment/relayer/transactions.ts';
import { createSales, type SaleContext } from '../payment/sale.ts';
import { createSettleRows } from '../payment/settle-rows.ts';
import type { Relayer, Settler, SettlerContext, SettlerStatus } from '../payment/settler.ts';
import {
  createLocalSettling,
  createMaintenance,
  createRailWatch,
  createRecovery,
  type LocalSettling,
  type RailProbes,
  type SettledBy,
  type Settling,
  sharersOf,
} from '../payment/settling.ts';
import { createRemoteSettling, createSwitchedSettling } from '../payment/settling-remote.ts';
import { createSurplusCount, forBooks } from '../payment/usdc/books.ts';
import { createChainCheck, createContractBudget, createTokenWatch } from '../payment/usdc/checks.ts';
import { createEvidence } from '../payment/usdc/evidence.ts';
import type { BookStore } from '../store/ports/books.ts';
import type { LedgerStore, Payment } from '../store/ports/payments.ts';
import type { RailStores } from '../store/ports/stores.ts';
import { contractsOf, createPaymentsReadiness, openRails, RAILS, type RailKit, type RailList } from './rails.ts';

// How this process sells for USDC. The kit has what selling and settling share. Settling is this process's own, or that
// of the instance which leads. Whoever settles opens the relayer, the rails' settlers and the books against the chain.

interface PaymentsOptions
  extends RailStores,
    Pick<RailKit, 'config' | 'chain' | 'metrics' | 'outgoing' | 'clock' | 'log'> {
  store: LedgerStore;
  /** Without it ledger and chain are not compared, and no difference stops a rail. */
  books?: BookStore;
  onSurplus?: (surplus: CountedSurplus) => void;
  bootId: string;
  railList?: RailList;
  onMove?: OnMove;
  timed?: TimeSales;
  /** Which process settles. By default this one alone. */
  settledBy?: SettledBy | undefined;
  onLeft?: OpenSettlingOptions['onLeft'];
}

export function createPayments(options: PaymentsOptions) {
  const { config, bootId, books, railList = RAILS, settledBy = { kind: 'local' }, timed, onLeft, log } = options;
  const kit = openKit(options, {
    settle: (intent, contract) => settling.settle(intent, contract),
    resume: (payment) => settling.resume(payment),
    probes: () => settling.probes(),
  });
  const mismatch = watchMismatch(options);
  const statusBy = (whyUnconfirmed: () => string | null) => (name: RailName) =>
    statusNow(() => settling, name, whyUnconfirmed, mismatch);
  const rails = openRails(kit, statusBy(options.chain.agreed.whyUnconfirmed), railList);
  const parts: SettlingParts = {
    ...kit,
    rails,
    openBooks: books && ((ofRails) => openBooks({ ...options, books }, ofRails)),
  };
  const settling: Settling = openSettling(parts, { settledBy, onLeft });
  const maintenance = createMaintenance(
    log,
    mismatch ? watched(settling, mismatch) : settling,
    ({ id, bootId: holder }) => holder !== bootId || kit.sales.serving.has(id),
    config.reconcileIntervalMs,
  );
  return {
    railFor: railAmong(timed ? rails.map((rail) => ({ ...rail, sell: timed(rail.info.name, rail.sell) })) : rails),
    ledger: kit.ledger,
    probes: settling.probes,
    readiness: createPaymentsReadiness({
      config,
      chain: options.chain,
      ledger: kit.ledger,
      // `/readyz` checks providers that do not agree by itself.
      settling: { ...settling, status: statusBy(() => null) },
      railList,
    }),
    ...maintenance,
  };
}

export type Payments = ReturnType<typeof createPayments>;

/** What selling and settling share. */
function openKit(options: PaymentsOptions, settling: Pick<Settling, 'settle' | 'resume' | 'probes'>): RailKit {
  const { config, chain, store, bootId, railList, settledBy, onMove, clock, log } = options;
  const { usdc, chainId } = config.network;
  const wallet = config.relayerPrivateKey && createWallet(config.relayerPrivateKey, chainId);
  const { storeBytes, keepSeconds, maxDeliveries } = config.replies;
  const maxOpen = config.maxOpenPayments;
  const limits = { storeBytes, sharedBy: sharersOf(settledBy), keepSeconds, maxDeliveries, maxOpen };
  const ledger = createLedger({ store, clock, bootId, ...limits, ...(onMove && { onMove }) });
  const evidence = createEvidence(chain, usdc);
  // Simulations come from the address that will send: the facilitator's or relayer's, else the seller's.
  const sender = (): `0x${string}` =>
    (config.rails.remote ? settling.probes().facilitator?.sender : wallet?.address) ?? config.seller;
  const check = createChainCheck(chain, usdc, sender, clock);
  const token = createTokenWatch({ chain, usdc, payTo: config.seller, sender, clock, log });
  return {
    ...options,
    sales: openSales(options, ledger, settling),
    chain: ranked(chain, 'settle'),
    wallet,
    check,
    contracts: createContractBudget(clock),
    evidence,
    token,
    ledger,
    balanceContracts: contractsOf(config, 'takesFromBalance', railList),
  };
}

function openSales({ config, clock, log }: PaymentsOptions, ledger: Ledger, settling: SaleContext['settling']) {
  return createSales({
    ledger,
    settling,
    failures: createFailures(config.failureLimits, clock),
    unknown: createUnknownPayments({ ledger, limits: config.unknownLimits, clock }),
    clock,
    network: config.network.caip2,
    log,
  });
}

function watchMismatch({ books, config, log }: PaymentsOptions): MismatchWatch | null {
  const { network, ledger } = config;
  return books ? createMismatchWatch(log, books, network.caip2, ledger.mismatchStopsBeyond) : null;
}

/** Read at each call: another process may settle by then. Money that the chain lacks stops a rail in every process. */
function statusNow(
  settling: () => Settling,
  rail: RailName,
  whyUnconfirmed: () => string | null,
  mismatch: MismatchWatch | null,
): SettlerStatus {
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

/** A process that never settles has it too. */
interface SettlingParts
  extends Pick<RailKit, 'config' | 'ledger' | 'token' | 'clock' | 'log'>,
    Pick<RailKit, 'chain' | 'wallet' | 'check' | 'evidence' | 'spending' | 'settled' | 'metrics'> {
  rails: readonly UsdcRail[];
  /** Absent in a command that works in the service's place. */
  openBooks?: ((rails: readonly BookRail[]) => Books) | undefined;
}

interface OpenSettlingOptions {
  settledBy: SettledBy;
  /** Called with the state of a row of another process, once no call of ours waits for that row. */
  onLeft?: ((id: string, state: Payment['state'] | null) => void) | undefined;
}

export function openSettling(parts: SettlingParts, { settledBy, onLeft }: OpenSettlingOptions): Settling {
  const { config, ledger, clock, log } = parts;
  switch (settledBy.kind) {
    case 'local': {
      // Nobody else uses this ledger, so nothing is waited for.
      const takeOver = createRecovery({ clock, log }, ledger, undefined, 0);
      return openLocalSettling(parts, takeOver);
    }
    case 'switched': {
      const { leader, living, takeOverAfterMs, join } = settledBy;
      const takeOver = createRecovery({ clock, log }, ledger, living, takeOverAfterMs);
      const openLocal = (fencingToken: number) => openLocalSettling(parts, takeOver, fencingToken);
      const remote = createRemoteSettling({ clock, log }, ledger, leader, config.settleWaitMs, onLeft);
      return createSwitchedSettling(log, remote, openLocal, takeOver, join);
    }
  }
}

/** `fencingToken`: of this process's lease, where several processes may settle. */
function openLocalSettling(parts: SettlingParts, takeOver: Settling['takeOver'], fencingToken?: number): LocalSettling {
  const { config, token, ledger, clock, log } = parts;
  const noteBroadcast: SettlerContext['noteBroadcast'] = (entries) => ledger.noteBroadcast(entries, fencingToken);
  const relayer = createSharedRelayer(parts, noteBroadcast);
  const context: SettlerContext = { noteBroadcast, fencingToken, relayer: relayer.open };
  const rails = parts.rails.map((rail) => ({ rail, settler: rail.openSettler(context) }));
  const books = parts.openBooks?.(
    rails.map(({ rail, settler }) => ({ name: rail.info.name, contract: rail.contract, books: settler.books })),
  );
  // The relayer is maintained once, not by each rail that uses it.
  const all = [...relayer.opened(), ...rails.map(({ settler }) => settler)];
  /** Null for a rail that is off. Its rows stay as they are: no other rail can read their evidence. */
  const settlerOf = (contract: Uint8Array): Settler | null =>
    rails.find(({ rail }) => Buffer.compare(rail.contract, contract) === 0)?.settler ?? null;
  const watch = createRailWatch(() => probeAll(rails, config.rails), clock, log);
  const rows = createSettleRows({ clock, log }, ledger, settlerOf, config.settleWaitMs, fencingToken);
  return createLocalSettling({
    ledger,
    rows,
    settlers: Object.fromEntries(rails.map(({ rail, settler }) => [rail.info.name, settler])),
    probes: watch.latest,
    detail: () => all.map((part) => part.detail?.() ?? null).find((detail) => detail !== null) ?? null,
    takeOver,
    isShared: fencingToken !== undefined,
    load: async () => {
      for (const part of all) await part.load?.();
    },
    /** Tries all parts, then rejects with the first failure. Nothing waits for the books, which may take long. */
    refresh: () => {
      void books?.due();
      return allTried([...all.map((part) => part.refresh?.()), token.refresh(), watch.refresh()]);
    },
    /** The relayer stops last, because a rail may still send something: channels send their last claims. */
    stopSettlers: async () => {
      // A page of the books may take long, and who has lost its lease must not go on sending.
      const compared = books?.stop();
      await Promise.all(rails.map(({ settler }) => settler.stop()));
      await Promise.all(relayer.opened().map(({ stop }) => stop()));
      await compared;
    },
  });
}

/** Our relayer, opened for the first rail that asks. A rail that a remote service settles does not ask. */
function createSharedRelayer(parts: SettlingParts, noteBroadcast: SettlerContext['noteBroadcast']) {
  let relayer: OpenRelayer | null = null;
  const byRail = new Map<string, Relayer>();
  const incomeToday = createIncome(parts, (rail) => byRail.has(rail));

  return {
    open: (rail: string): Relayer => {
      const { wallet } = parts;
      if (!wallet) throw new Error('RELAYER_PRIVATE_KEY is missing');
      relayer ??= openRelayer({ ...parts, wallet, incomeToday, noteBroadcast });
      parts.metrics?.watchRail(rail);
      const own = byRail.get(rail) ?? relayerFor(rail, relayer);
      byRail.set(rail, own);
      return own;
    },
    opened: (): OpenRelayer[] => (relayer ? [relayer] : []),
  };
}

/** What rails that use our relayer brought in this UTC day, in USDC base units. */
function createIncome(
  { rails, settled, clock }: Pick<SettlingParts, 'rails' | 'settled' | 'clock'>,
  isRelayed: (rail: string) => boolean,
): () => Promise<bigint> {
  const wayOf = (signedFor: Uint8Array | null) => {
    const rail = rails.find(({ contract }) => signedFor && Buffer.compare(contract, signedFor) === 0);
    return rail && isRelayed(rail.info.name) ? 'relayed' : 'other';
  };
  const sums = createSettledToday(settled, wayOf, clock);
  return async () => (await sums()).find(({ rail }) => rail === 'relayed')?.amount ?? 0n;
}

/** What the rail sends bears its name. Without `load`, `refresh`, `detail` and `stop`: the relayer has them once. */
function relayerFor(rail: string, { settle, operate, ...relayer }: OpenRelayer): Relayer {
  const { unavailable, cannotSend, refuses, refused, refusesCode } = relayer;
  return {
    unavailable,
    cannotSend,
    refuses,
    refused,
    refusesCode,
    settle: (intents) => settle(intents.map((intent) => ({ ...intent, rail }))),
    operate: (operation) => operate({ ...operation, rail }),
  };
}

/** Probes each remote service. Never rejects. The relayer is none: it watches its own balance. */
async function probeAll(
  rails: readonly { rail: UsdcRail; settler: Settler }[],
  config: Config['rails'],
): Promise<RailProbes> {
  const asked = rails.flatMap(({ rail, settler }) => {
    const [service, probe] = [rail.info.service(config), settler.probe?.()];
    return service && probe ? [probe.then((found) => [service.name, found] as const)] : [];
  });
  return Object.fromEntries(await Promise.all(asked));
}

type BooksNeeds = Pick<PaymentsOptions, 'config' | 'chain' | 'store' | 'transfers' | 'onSurplus' | 'clock' | 'log'> &
  Pick<PaymentsOptions, 'railList'> & { books: BookStore };

/** Opens the books for the process that settles. What leaves a rail's own contract is that rail's to compare. */
function openBooks(needs: BooksNeeds, rails: readonly BookRail[]): Books {
  const { config, store, clock, log } = needs;
  const { usdc, caip2: network } = config.network;
  const chain = forBooks(needs.chain);
  const payTo = hexToBytes(config.seller);
  const known = (transaction: Uint8Array) => knownIn(needs, transaction, payTo);
  const without = contractsOf(config, 'holdsEarnings', needs.railList);
  const surplus = createSurplusCount({ chain, usdc, payTo, without, known });
  return createBooks({
    store: needs.books,
    ledger: store,
    rails,
    network,
    reachedBlock: () => chain.agreed.head({ rank: 'collect' }),
    countSurplus: surplus.count,
    onSurplus: (counted) => {
      needs.onSurplus?.(counted);
      const { transfers, amount, transactions } = counted;
      const detail = { transfers, usdc: formatUnits(amount, USDC_DECIMALS), transactions };
      log.warn(detail, 'more came in than the ledger has');
    },
    clock,
    log,
  });
}

/** The most rows of one transaction that are added up. A batch settles at most 250 payments. */
const MOST_ROWS = 1000;

async function knownIn(
  { store, transfers }: Pick<BooksNeeds, 'store' | 'transfers'>,
  transaction: Uint8Array,
  payTo: Uint8Array,
): Promise<bigint> {
  const same = (one: Uint8Array | null, other: Uint8Array) => one !== null && Buffer.compare(one, other) === 0;
  const rows = (await store.findByHash(transaction, MOST_ROWS)).filter((row) => same(row.transaction, transaction));
  for (const id of await transfers.paymentsIn(transaction, MOST_ROWS)) {
    const row = await store.get(id);
    if (row) rows.push(row);
  }
  return rows
    .filter((row) => row.state === 'settled' && same(row.payTo, payTo))
    .reduce((sum, { amount }) => sum + amount, 0n);
}

/** The rail that recognises a payment's terms; else the first, whose checks say what is wrong with them. */
function railAmong([first, ...others]: readonly UsdcRail[]): RailFor {
  if (!first) throw new Error('no rail is on');
  return (accepted) => others.find(({ recognises }) => recognises(accepted)) ?? first;
}

/** Maintenance also reads what the chain lacks, before the first sale and in each round. */
function watched(settling: Settling, mismatch: MismatchWatch): Settling {
  return {
    ...settling,
    start: async (maintain) => {
      await mismatch.refresh();
      await settling.start(maintain);
    },
    refresh: () => allTried([settling.refresh(), mismatch.refresh()]),
  };
}
