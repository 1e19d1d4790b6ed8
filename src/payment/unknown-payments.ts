import type { UnknownLimits } from '../config/failures.ts';
import { TooMany } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { CLIENTS_PER_SITE, siteKey } from '../lib/limits/client-key.ts';
import type { Ledger } from './ledger.ts';
import { createReadSoon } from './ledger-timeout.ts';

/** Payments remembered at the most, about 4 MB. Beyond that the oldest is forgotten. */
const MAX_REMEMBERED = 10_000;
/** Milliseconds between two reads of the rows that hold up one payer or client. A row's end is then noticed at its buyer's next try. */
const REREAD_MS = 1000;
/** A payment whose outcome is unknown rarely ends sooner, in seconds: Arc mines two blocks a second, and a facilitator is asked again after pauses. */
const RETRY_AFTER_SECONDS = 10;

interface Holder {
  readonly limit: number;
  readonly ids: Set<string>;
  readMs: number;
}

/** The payments of each payer and client whose outcome is unknown. */
export interface UnknownPayments {
  /** Notes that a settlement ended without a known outcome. */
  note(id: string, payer: string, client: string): void;
  /**
   * Throws TooMany (`unknown_payments`) while the payer, the client or its IPv6 /48 has too many payments with an unknown outcome. For new purchases
   * only: a payment that may have moved money is never kept from its own answer. Throws 503 `ledger_unavailable`, `charged: "unknown"`, when the
   * ledger cannot be read in time.
   */
  check(payer: string, client: string): Promise<void>;
}

/**
 * Limits the payments with an unknown outcome. Such a row costs lookups and repeated requests to a facilitator until it ends, at the latest when its
 * authorization expires. The counts are in each process's memory. The ledger's rows decide: at the limit they are read again, once a second.
 */
export function createUnknownPayments({
  ledger,
  limits,
  clock,
}: {
  ledger: Pick<Ledger, 'get'>;
  limits: UnknownLimits;
  clock: Clock;
}): UnknownPayments {
  const soon = createReadSoon(clock);
  const holders = new Map<string, Holder>();
  const holdersOf = new Map<string, readonly string[]>();

  function forget(id: string): void {
    for (const name of holdersOf.get(id) ?? []) {
      const holder = holders.get(name);
      holder?.ids.delete(id);
      if (holder?.ids.size === 0) holders.delete(name);
    }
    holdersOf.delete(id);
  }

  async function isFull(holder: Holder): Promise<boolean> {
    if (holder.ids.size < holder.limit) return false;
    if (clock.nowMs() - holder.readMs < REREAD_MS) return true;
    holder.readMs = clock.nowMs();
    for (const id of [...holder.ids]) {
      const state = (await soon(ledger.get(id)))?.state;
      if (state !== 'unknown' && state !== 'settling') forget(id);
    }
    return holder.ids.size >= holder.limit;
  }

  return {
    note(id, payer, client) {
      const names = namesOf(limits, payer, client).filter(([, limit]) => limit > 0);
      for (const [name, limit] of names) {
        const holder = holders.get(name) ?? { limit, ids: new Set(), readMs: Number.NEGATIVE_INFINITY };
        holder.ids.add(id);
        holders.set(name, holder);
      }
      holdersOf.set(
        id,
        names.map(([name]) => name),
      );
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

/** What a payment counts for, each with its limit. */
function namesOf(limits: UnknownLimits, payer: string, client: string): (readonly [name: string, limit: number])[] {
  const site = siteKey(client);
  return [
    [`payer ${payer}`, limits.payer],
    [`client ${client}`, limits.client],
    ...(site === null ? [] : [[`client ${site}`, limits.client * CLIENTS_PER_SITE] as const]),
  ];
}

function tooMany(): TooMany {
  const detail =
    'the outcome of too many earlier payments is unknown; present those again first, which is never refused for this';
  return new TooMany('unknown_payments', detail, RETRY_AFTER_SECONDS);
}
