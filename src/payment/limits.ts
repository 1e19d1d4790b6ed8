import type { Config } from '../config.ts';
import { TooMany, Unavailable } from '../errors.ts';
import { type Clock, DAY_MS } from '../lib/clock.ts';
import {
  CLIENTS_PER_SITE,
  type ClientWindows,
  type Counted,
  createMinuteWindows,
  MAX_CLIENTS,
  openClientWindows,
  type ReadableWindows,
  siteKey,
} from '../lib/limits/count.ts';
import type { Sold } from './call.ts';
import { createReadSoon, type Ledger } from './ledger.ts';
import type { Asker, UsdcCall } from './rail.ts';
import { PaymentRefused } from './refusal.ts';

// Bounds what payers and clients without money at stake can cause: uncharged failures by minute, settlements that moved
// nothing by day, unknown payments until they end. In memory: the counts protect work and gas, not sales.

interface FailureRefusal {
  readonly code: 'payer_failures' | 'client_failures';
  readonly detail: string;
  readonly retryAfterSeconds: number;
}

export interface Failures {
  refusal(payer: string, client: string): FailureRefusal | null;
  /** By this minute's failures alone: a buyer who may be owed an answer must not wait for a day. */
  refusalOfMinute(payer: string, client: string): FailureRefusal | null;
  /** Whether a call of this client, or of its IPv6 /48, has failed uncharged in this minute. */
  hasFailed(client: string): boolean;
  /** Counts an invalid signature, for the client alone: any client can name any payer. */
  noteUnproven(client: string): void;
  /** Counts a call that failed uncharged after the payer's signature was checked. */
  note(payer: string, client: string): void;
  /** Returns what notes the settlement's end. `movedNothing`: mined without transfer, or refused by a facilitator. */
  beginSettlement(payer: string, client: string): (movedNothing: boolean) => void;
  /** Seconds until payers that have never paid here are accepted from this client again; 0 when they are. */
  newPayersAfterSeconds(client: string): number;
}

/** Without it, one payment that is never charged, or one client with many payers, could cause work without end. */
export function createFailures(limits: Config['failureLimits'], clock: Clock): Failures {
  const ofMinute = () => createMinuteWindows(clock);
  const ofDay = () => createMinuteWindows(clock, MAX_CLIENTS, DAY_MS);
  const [payers, payersOfDay] = [ofMinute(), ofDay()];
  const clients = openClientWindows(ofMinute, 'failures');
  const settlements = openClientWindows(ofDay, 'failed settlements');
  // Settlements under way, by client. Each of them may still fail.
  const open = new Map<string, number>();

  function count(client: string, more: number): void {
    const now = (open.get(client) ?? 0) + more;
    if (now > 0) open.set(client, now);
    else open.delete(client);
  }

  function refusalOfMinute(payer: string, client: string): FailureRefusal | null {
    const forPayer = waitSeconds(limits.payer, payers.read(payer));
    if (forPayer > 0) return refusal('payer_failures', 'this payer’s', forPayer);
    const forClient = clientWaitSeconds(limits.client, clients, client);
    return forClient > 0 ? refusal('client_failures', 'this client’s', forClient) : null;
  }

  return {
    refusalOfMinute,
    refusal(payer, client) {
      const forDay = waitSeconds(limits.clientSettlements, payersOfDay.read(payer));
      const ofMinute = refusalOfMinute(payer, client);
      if (ofMinute?.code === 'payer_failures' || forDay === 0) return ofMinute;
      return { code: 'payer_failures', detail: MOVED_NOTHING, retryAfterSeconds: forDay };
    },
    hasFailed: (client) => {
      const site = siteKey(client);
      return clients.clients.read(client).count > 0 || (site !== null && clients.sites.read(site).count > 0);
    },
    noteUnproven: (client) => noteClient(clients, client),
    note(payer, client) {
      payers.count(payer);
      noteClient(clients, client);
    },
    beginSettlement(payer, client) {
      count(client, 1);
      return (movedNothing) => {
        count(client, -1);
        if (!movedNothing) return;
        noteClient(settlements, client);
        payersOfDay.count(payer);
      };
    },
    newPayersAfterSeconds(client) {
      const seconds = clientWaitSeconds(limits.clientSettlements, settlements, client);
      // After the first failure, settlements under way count too. Otherwise a burst would pass the limit.
      const failed = settlements.clients.read(client).count;
      const isFull = failed > 0 && isReached(limits.clientSettlements, failed + (open.get(client) ?? 0));
      return isFull ? Math.max(1, seconds) : seconds;
    },
  };
}

/** A call's client, as reads that cost requests see it. A burst loses its precedence with its first failure. */
export function askerOf(failures: Failures, { client, signal }: Pick<UsdcCall, 'client' | 'signal'>): Asker {
  return {
    client,
    signal,
    get hasFailed() {
      return failures.hasFailed(client);
    },
  };
}

/** Throws TooMany while the payer or the client must wait. */
export function checkFailures(failures: Failures, payer: string, client: string): void {
  refuseFailure(failures.refusal(payer, client));
}

export function refuseFailure(refusal: FailureRefusal | null): void {
  if (refusal) throw new TooMany(refusal.code, refusal.detail, refusal.retryAfterSeconds);
}

const MOVED_NOTHING = 'too many of this payer’s settlements moved nothing today';

function refusal(code: FailureRefusal['code'], whose: string, retryAfterSeconds: number): FailureRefusal {
  return { code, detail: `too many of ${whose} calls failed uncharged; wait a little`, retryAfterSeconds };
}

function isReached(limit: number, count: number): boolean {
  return limit > 0 && count >= limit;
}

function waitSeconds(limit: number, { count, resetSeconds }: Counted): number {
  return isReached(limit, count) ? resetSeconds : 0;
}

/** Also for the client's IPv6 site (a /48), whose limit is CLIENTS_PER_SITE times a client's. */
function clientWaitSeconds(limit: number, windows: ClientWindows<ReadableWindows>, client: string): number {
  const site = siteKey(client);
  const ofSite = site === null ? 0 : waitSeconds(limit * CLIENTS_PER_SITE, windows.sites.read(site));
  return Math.max(waitSeconds(limit, windows.clients.read(client)), ofSite);
}

function noteClient(windows: ClientWindows<ReadableWindows>, client: string): void {
  windows.clients.count(client);
  const site = siteKey(client);
  if (site !== null) windows.sites.count(site);
}

/** About 4 MB. Beyond that the oldest is forgotten. */
const MAX_REMEMBERED = 10_000;
/** Between two reads of the rows that hold up a payer or client: a row's end is noticed at the buyer's next try. */
const REREAD_MS = 1000;
/** An unknown payment rarely ends sooner: Arc mines two blocks a second, and a facilitator is asked after pauses. */
const RETRY_AFTER_SECONDS = 10;

interface Holder {
  readonly name: string;
  readonly limit: number;
  readonly ids: Set<string>;
  readMs: number;
}

export interface UnknownPayments {
  note(id: string, payer: string, client: string): void;
  /** Throws TooMany, for new purchases only: no paid buyer is kept from its answer. Or 503 `ledger_unavailable`. */
  check(payer: string, client: string): Promise<void>;
}

/** An unknown row costs lookups until it ends, at its expiry at the latest. At the limit the ledger's rows decide. */
export function createUnknownPayments({
  ledger,
  limits,
  clock,
}: {
  ledger: Pick<Ledger, 'get'>;
  limits: Config['unknownLimits'];
  clock: Clock;
}): UnknownPayments {
  const soon = createReadSoon(clock);
  const holders = new Map<string, Holder>();
  const holdersOf = new Map<string, readonly Holder[]>();

  function forget(id: string): void {
    for (const { name, ids } of holdersOf.get(id) ?? []) {
      ids.delete(id);
      if (ids.size === 0) holders.delete(name);
    }
    holdersOf.delete(id);
  }

  async function isFull(holder: Holder): Promise<boolean> {
    if (holder.ids.size < holder.limit) return false;
    if (clock.nowMs() - holder.readMs < REREAD_MS) return true;
    holder.readMs = clock.nowMs();
    for (const id of [...holder.ids]) {
      const row = await soon(ledger.get(id));
      if (row?.state !== 'unknown') forget(id);
    }
    return holder.ids.size >= holder.limit;
  }

  return {
    note(id, payer, client) {
      const limited = namesOf(limits, payer, client).filter(([, limit]) => limit > 0);
      const its = limited.map(([name, limit]) => {
        const holder = holders.get(name) ?? { name, limit, ids: new Set(), readMs: Number.NEGATIVE_INFINITY };
        holder.ids.add(id);
        holders.set(name, holder);
        return holder;
      });
      holdersOf.set(id, its);
      const [oldest] = holdersOf.keys();
      if (holdersOf.size > MAX_REMEMBERED && oldest !== undefined) forget(oldest);
    },
    async check(payer, client) {
      for (const [name] of namesOf(limits, payer, client)) {
        const holder = holders.get(name);
        if (holder && (await isFull(holder))) throw tooMany();
      }
    },
  };
}

function namesOf(limits: Config['unknownLimits'], payer: string, client: string): [name: string, limit: number][] {
  const names: [string, number][] = [
    [`payer ${payer}`, limits.payer],
    [`client ${client}`, limits.client],
  ];
  const site = siteKey(client);
  if (site !== null) names.push([`client ${site}`, limits.client * CLIENTS_PER_SITE]);
  return names;
}

function tooMany(): TooMany {
  const detail =
    'the outcome of too many earlier payments is unknown; present those again first, which is never refused for this';
  return new TooMany('unknown_payments', detail, RETRY_AFTER_SECONDS);
}

/** A refusal of contracts counts too (TooMany, Unavailable): the read of the payer's code has cost a request. */
export function hasCostARead(error: unknown): boolean {
  if (error instanceof Unavailable) return error.code === 'settlement_unavailable';
  return error instanceof PaymentRefused || error instanceof TooMany;
}

/** Whether a failure before the intent is stored counts against the buyer. Never where the service was short itself. */
export function isBuyersDoing(error: unknown, isVerified: boolean): boolean {
  // A buyer that knows an old state of its channel gets the new one, and has done nothing wrong.
  if (error instanceof PaymentRefused) return isVerified || !error.correction?.isForgiven;
  return isVerified && !(error instanceof Unavailable);
}

/**
 * Sells for a proof that is no authorization, and counts its failures. `signer`: who signed it, in hex. Until the
 * endpoint runs, any client could have named this signer.
 */
export async function counted(
  failures: Failures,
  signer: string,
  call: UsdcCall,
  sell: (call: UsdcCall) => Promise<Sold>,
): Promise<Sold> {
  let hasRun = false;
  const run: UsdcCall['run'] = (what, signal) => {
    hasRun = true;
    return call.run(what, signal);
  };
  try {
    return await sell({ ...call, run });
  } catch (error) {
    if (!isBuyersDoing(error, hasRun)) throw error;
    if (hasRun) failures.note(signer, call.client);
    else failures.noteUnproven(call.client);
    throw error;
  }
}
