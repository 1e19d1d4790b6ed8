import { loadConfig } from '../../../src/config.ts';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import type { UsdcRail } from '../../../src/payment/rail.ts';
import {
  type Authorization,
  type Found,
  type Intent,
  type LookupRank,
  NONCE_USED,
  type Outcome,
  type RailProbe,
  type RefusedPayer,
  type Settler,
  type SettlerContext,
} from '../../../src/payment/settler.ts';
import { createMaintenance, type Leader, type LeaderReport } from '../../../src/payment/settling.ts';
import { storesOver } from '../../../src/store/open.ts';
import type { LedgerStore, Payment } from '../../../src/store/ports/payments.ts';
import { openSettling as openByWiring } from '../../../src/wiring/payments.ts';
import { openMemoryLedger } from '../ledger/fresh-ledger.ts';
import { hash32, sale, storedIntent } from '../ledger/ledger-rows.ts';
import { openMemory } from '../ledger/memory-ledger.ts';
import { createManualClock, type ManualClock } from '../manual-clock.ts';

// A process that settles, or lets another one settle, over a ledger in memory. Its rails have a scripted settler:
// `usdc-exact` has every member of the port, `usdc-gateway` those alone that a settler must have.

const START_MS = 1_800_000_000_000;
export const WAIT_MS = 5000;
const TRANSACTION = Buffer.from(hash32('transaction'));
/** Whose payments all rows here are. */
export const PAYER = Buffer.alloc(20, 9);
const CONTRACTS = { 'usdc-exact': Buffer.alloc(20, 0x36), 'usdc-gateway': Buffer.alloc(20, 0x37) };

type Rail = keyof typeof CONTRACTS;

const PAID: Outcome = { kind: 'settled', transaction: TRANSACTION, block: 9, paid: 500n };
const FAILED: Outcome = { kind: 'failed', reason: NONCE_USED };
const UNKNOWN: Outcome = { kind: 'unknown' };
const OUTCOMES = { pays: PAID, fails: FAILED, 'does not know': UNKNOWN };
const EVIDENCE: Readonly<Record<string, Found>> = {
  open: { kind: 'open' },
  paid: PAID,
  failed: FAILED,
  unclear: UNKNOWN,
};

/** What the settlers do and say, until the test says otherwise. */
function newScript() {
  return {
    settles: 'pays' as keyof typeof OUTCOMES,
    /** Settlements end after this. */
    held: Promise.resolve() as Promise<unknown>,
    evidence: 'open' as 'open' | 'paid' | 'failed' | 'unclear' | 'unreadable',
    /** Done before the evidence answers. */
    meanwhile: async (): Promise<unknown> => undefined,
    unavailable: null as string | null,
    /** Ends the sales, and not what is owed already. */
    spent: null as string | null,
    refused: [] as readonly RefusedPayer[],
    codeRefused: null as string | null,
    gatewayUnavailable: null as string | null,
    detail: null as string | null,
    loads: Promise.resolve() as Promise<unknown>,
    refreshes: Promise.resolve() as Promise<unknown>,
    stops: Promise.resolve() as Promise<unknown>,
    probe: { ok: true } as RailProbe,
  };
}

interface Settlers {
  readonly script: ReturnType<typeof newScript>;
  readonly given: Intent[];
  readonly lookups: { id: string; rank: LookupRank; fromBlock: number }[];
  /** What they did beside the rows, with the number of the lease. */
  readonly done: string[];
  open(rail: Rail, context: SettlerContext): Settler;
}

/** The settlers of a process. They read the row of an authorization in `ledger`. */
function scriptedSettlers(ledger: Ledger, ownOnly: boolean): Settlers {
  const script = newScript();
  const [given, lookups, done]: [Intent[], Settlers['lookups'], string[]] = [[], [], []];

  async function lookup({ nonce }: Authorization, fromBlock: number, { rank }: { rank: LookupRank }): Promise<Found> {
    const row = await ledger.find({ ...sale('any'), nonce });
    await script.meanwhile();
    lookups.push({ id: row?.id ?? 'gone', rank, fromBlock });
    const found = EVIDENCE[script.evidence];
    if (!found) throw new Error('the evidence cannot be read');
    return found;
  }

  const least: Settler = {
    lookup,
    ownOnly,
    settle: (intents: readonly Intent[]) => {
      given.push(...intents);
      return intents.map(async () => {
        await script.held;
        return OUTCOMES[script.settles];
      });
    },
    unavailable: () => script.gatewayUnavailable,
    stop: async () => {},
  };

  function open(rail: Rail, { fencingToken }: SettlerContext): Settler {
    if (rail === 'usdc-gateway') return least;
    const noted = (what: 'loads' | 'refreshes' | 'stops') => async () => {
      done.push(fencingToken === undefined ? what : `${what} ${fencingToken}`);
      await script[what];
    };
    return {
      ...least,
      unavailable: () => script.unavailable ?? script.spent,
      cannotSend: () => script.unavailable,
      refuses: (payer: Uint8Array) => script.refused.find(([hex]) => hex === hexOf(payer))?.[1] ?? null,
      refused: () => script.refused,
      refusesCode: () => script.codeRefused,
      load: noted('loads'),
      refresh: noted('refreshes'),
      detail: () => script.detail,
      probe: async () => {
        done.push('probes');
        return script.probe;
      },
      stop: noted('stops'),
    };
  }

  return { script, given, lookups, done, open };
}

interface World {
  readonly db: Sqlite;
  readonly store: LedgerStore;
  readonly clock: ManualClock;
}

function newLedger(): World {
  const db = openMemoryLedger();
  return { db, store: storesOver(openMemory(db)).payments, clock: createManualClock(START_MS) };
}

interface SettlingOptions {
  /** Whether this process settles alone, or from `lead` to `stepDown`, and another one at all other times. */
  leads?: 'always' | 'in turn';
  bootId?: string;
  /** Another process over the same ledger, with its clock. */
  beside?: World;
  /** Who settles what this process asks for, where it does not lead. Without one, every request is answered at once. */
  leader?: { readonly settling: Pick<Leader, 'carry'> };
  waitMs?: number;
  storeBytes?: number;
  /** How many instances share the reply store. This one learns it by joining the others. */
  instances?: number;
  /** Whether other ledgers sell to the same recipient. */
  ownOnly?: boolean;
  rails?: readonly Rail[];
  living?: () => readonly string[];
  takeOverAfterMs?: number;
  /** How the ledger's calls go wrong. */
  broken?: Partial<Ledger>;
}

export function openSettling(options: SettlingOptions = {}) {
  const { leads = 'always', bootId = 'this', beside = newLedger(), waitMs = WAIT_MS } = options;
  const { rails = ['usdc-exact', 'usdc-gateway'], ownOnly = false, living = () => [], takeOverAfterMs = 0 } = options;
  const { storeBytes = 1e9, instances = 1 } = options;
  const { store, clock } = beside;
  const { link, join, hasJoined, leader } = linkTo(options.leader);
  const sharedBy = () => (hasJoined() ? instances : 1);
  const [said, warned, errors]: [object[], object[], object[]] = [[], [], []];
  /** The numbers of the leases under which rows were failed. */
  const fences: (number | undefined)[] = [];
  /** When a row was read, in milliseconds since the start. */
  const reads: number[] = [];
  const left: [string, string | null][] = [];

  const ledgerOf = perName((of: string) => {
    const limits = { storeBytes, sharedBy, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
    return createLedger({ store, clock, bootId: of, ...limits });
  });
  const ledger = ledgerOf(bootId);
  const watched: Ledger = {
    ...ledger,
    get: (id) => {
      reads.push(clock.nowMs() - START_MS);
      return ledger.get(id);
    },
    failed: (id, reason, fence) => {
      fences.push(fence);
      return ledger.failed(id, reason, fence);
    },
    ...options.broken,
  };

  const { open, ...settlers } = scriptedSettlers(ledger, ownOnly);
  const log = {
    info: (detail: object) => void said.push(detail),
    warn: (detail: object) => void warned.push(detail),
    error: (detail: object) => void errors.push(detail),
  };
  const inTurn = { kind: 'switched' as const, leader: link, living, takeOverAfterMs, join };
  const settling = openByWiring(
    {
      config: loadConfig({ ...ENV, SETTLE_WAIT_MS: String(waitMs) }),
      ledger: watched,
      rails: rails.map((rail) => railOf(rail, (context) => open(rail, context))),
      token: { check: async () => true, refusal: () => null, refresh: async () => {} },
      clock,
      log,
      ...NO_RELAYER,
    },
    {
      settledBy: leads === 'always' ? { kind: 'local' } : inTurn,
      onLeft: (id, state) => void left.push([id, state]),
    },
  );

  const rowOf = async (id: string) => (await ledger.get(id)) as Payment;
  /** A stored intent; `sent` where it was handed out before. */
  async function stored(name: string, { sent = false, hasCode = false, by = bootId } = {}): Promise<Payment> {
    const its = ledgerOf(by);
    const id = String(await its.reserve(sale(name), false));
    await its.storeIntent(id, storedIntent('reply', { payerHasCode: hasCode }));
    if (sent) await its.noteBroadcast([{ id, transaction: TRANSACTION }]);
    return rowOf(id);
  }

  return {
    ...beside,
    settling,
    leader,
    link,
    ...settlers,
    ledger,
    said,
    warned,
    errors,
    fences,
    reads,
    left,
    stored,
    reserved: async (name: string, by = bootId): Promise<Payment> =>
      rowOf(String(await ledgerOf(by).reserve(sale(name), false))),
    unknown: async (name: string, more?: Parameters<typeof stored>[1]): Promise<Payment> => {
      const { id } = await stored(name, more);
      await ledger.unknown(id);
      return rowOf(id);
    },
    /** Settles a row that this process has just stored, as a sale does. */
    settle: (payment: Payment) => settling.settle(intentOf(payment), payment.contract),
    /** Ends a row as another process does. */
    pay: ({ id }: Pick<Payment, 'id'>) => ledger.settled(id, TRANSACTION, 9, 500n),
    stateOf: async ({ id }: Pick<Payment, 'id'>) => (await ledger.get(id))?.state ?? null,
    pass: async (ms: number): Promise<void> => {
      await settled();
      await clock.advance(ms);
      await settled();
    },
    /** Maintenance every second. */
    maintenance: (isInUse: (payment: Payment) => boolean) => createMaintenance(log, settling, isInUse, 1000),
  };
}

export type OpenSettling = ReturnType<typeof openSettling>;

const ENV = {
  NETWORK: 'arc',
  SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
  RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
};
/** The scripted settlers ask for no relayer, and these parts are the relayer's. */
const NO_RELAYER = {
  wallet: null,
  chain: null,
  check: null,
  evidence: null,
  spending: null,
  settled: null,
} as never as {
  wallet: null;
} & Pick<Parameters<typeof openByWiring>[0], 'chain' | 'check' | 'evidence' | 'spending' | 'settled'>;

/** One for each name. */
function perName<T>(open: (name: string) => T): (name: string) => T {
  const opened = new Map<string, T>();
  return (name) => {
    const one = opened.get(name) ?? open(name);
    opened.set(name, one);
    return one;
  };
}

const hexOf = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex')}`;
/** Lets all work go on that waits for no time. */
const settled = (): Promise<void> => new Promise((next) => setImmediate(next));

function railOf(name: Rail, openSettler: UsdcRail['openSettler']): UsdcRail {
  const service = () => ({ name: name === 'usdc-exact' ? 'facilitator' : 'gateway', isVital: true });
  const own = {
    isOn: () => true,
    contract: () => null,
    requirement:
      () =>
      <T>(plain: T) =>
        plain,
  };
  const info = { name, way: 'usdc' as const, ...own, service };
  const sell = () => Promise.reject(new Error('nothing is sold here'));
  return { info, contract: CONTRACTS[name], recognises: () => true, sell, openSettler };
}

function intentOf({ id, payer: from, payTo: to, amount: value, signature, checkedBlock, ...row }: Payment): Intent {
  const { validAfter, validBefore, nonce, payerHasCode } = row;
  const authorization = { from, to, value, validAfter, validBefore, nonce, signature: signature as Uint8Array };
  return {
    id,
    authorization,
    call: null,
    fromBlock: checkedBlock as number,
    broadcast: false,
    hasCode: payerHasCode as boolean,
  };
}

/** The way to the process that settles. The test has its faults, and what it reports. */
function linkTo(other: SettlingOptions['leader']) {
  const asked: string[] = [];
  let tell = (_id: string) => {};
  let joined: Leader | null = null;
  const link = {
    losesRequests: false,
    losesNotices: false,
    asked,
    reported: null as LeaderReport | null,
    stale: null as string | null,
    tell: (id: string) => tell(id),
    ask: (id: string) => {
      asked.push(id);
      if (link.losesRequests) return;
      const answered = other ? other.settling.carry(id) : Promise.resolve();
      void answered.then(() => link.losesNotices || tell(id));
    },
    onEnded: (listener: typeof tell) => {
      tell = listener;
    },
    report: () => link.reported,
    staleReason: () => link.stale,
  };
  return {
    link,
    join: async (leader: Leader) => {
      joined = leader;
    },
    hasJoined: () => joined !== null,
    /** What this process does while it holds the lease, once it has started. */
    leader: (): Leader => {
      if (!joined) throw new Error('the process has not joined the others');
      return joined;
    },
  };
}
