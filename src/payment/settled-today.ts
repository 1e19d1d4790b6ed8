import type { Clock } from '../lib/clock.ts';

/** Reads sums of payments; the ledger's store implements it. */
export interface SettledSource {
  settledBetween(
    from: number,
    to: number,
  ): Promise<
    readonly {
      readonly rail: 'usdc' | 'lightning';
      readonly contract: Uint8Array | null;
      readonly count: number;
      readonly amount: bigint;
    }[]
  >;
}

/** Payments received on a rail. `amount` is in base units of USDC, or in millisatoshis. */
export interface RailSum {
  readonly rail: 'usdc' | 'gateway' | 'channels' | 'lightning';
  readonly count: number;
  readonly amount: bigint;
}

interface Held {
  readonly dayStart: number;
  /** `sums` covers every payment before this time. */
  readonly until: number;
  readonly sums: ReadonlyMap<RailSum['rail'], RailSum>;
}

const DAY_MS = 86_400_000;
/** A payment is written soon after its own timestamp. Sums older than this do not change any more. */
const MOMENTS_MS = 60_000;

/**
 * Sums the payments since midnight UTC. Every rail that is sold has an entry, zero included. Only the last minute is read again each time, so a busy
 * day costs no more than a quiet one.
 * `railOf` names the rail whose payers sign for a contract.
 */
export function createSettledToday(
  source: SettledSource,
  railOf: (contract: Uint8Array) => RailSum['rail'],
  clock: Clock,
): () => Promise<readonly RailSum[]> {
  let held: Held | null = null;

  async function add(sums: Held['sums'], from: number, to: number): Promise<Map<RailSum['rail'], RailSum>> {
    const total = new Map(sums);
    for (const { contract, count, amount, ...one } of await source.settledBetween(from, to)) {
      const rail = contract ? railOf(contract) : one.rail;
      const before = total.get(rail) ?? { rail, count: 0, amount: 0n };
      total.set(rail, { rail, count: before.count + count, amount: before.amount + amount });
    }
    return total;
  }

  return async () => {
    const now = clock.nowMs();
    const dayStart = Math.floor(now / DAY_MS) * DAY_MS;
    const before = held?.dayStart === dayStart ? held : { dayStart, until: dayStart, sums: NOTHING };
    const until = Math.max(before.until, now - MOMENTS_MS);
    const sums = await add(before.sums, before.until, until);
    held = { dayStart, until, sums };
    return [...(await add(sums, until, Number.MAX_SAFE_INTEGER)).values()];
  };
}

const NOTHING: Held['sums'] = new Map(
  (['usdc', 'lightning'] as const).map((rail) => [rail, { rail, count: 0, amount: 0n }]),
);
