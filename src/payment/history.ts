import { type Clock, DAY_MS } from '../lib/clock.ts';

// What was earned: sums of the ledger's payments by the way they came in.

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

/** Payments received in one way: `amount` in base units of USDC, or in millisatoshis. */
export interface RailSum {
  readonly rail: string;
  readonly count: number;
  readonly amount: bigint;
}

interface Held {
  readonly dayStart: number;
  /** `sums` covers every payment before this time. */
  readonly until: number;
  readonly sums: ReadonlyMap<string, RailSum>;
}

/** A payment is written soon after its own time. Older sums do not change any more. */
const MOMENTS_MS = 60_000;

/** Payments since midnight UTC; only the last minute is read again. `railOf`: null is Lightning. `always`: listed. */
export function createSettledToday(
  source: SettledSource,
  railOf: (contract: Uint8Array | null) => string,
  clock: Clock,
  always: readonly string[] = [],
): () => Promise<readonly RailSum[]> {
  const nothing = new Map(always.map((rail) => [rail, { rail, count: 0, amount: 0n }]));
  let held: Held | null = null;

  async function add(sums: Held['sums'], from: number, to: number): Promise<Map<string, RailSum>> {
    const total = new Map(sums);
    for (const { contract, count, amount } of await source.settledBetween(from, to)) {
      const rail = railOf(contract);
      const before = total.get(rail) ?? { rail, count: 0, amount: 0n };
      total.set(rail, { rail, count: before.count + count, amount: before.amount + amount });
    }
    return total;
  }

  return async () => {
    const now = clock.nowMs();
    const dayStart = Math.floor(now / DAY_MS) * DAY_MS;
    const before = held?.dayStart === dayStart ? held : { dayStart, until: dayStart, sums: nothing };
    const until = Math.max(before.until, now - MOMENTS_MS);
    const sums = await add(before.sums, before.until, until);
    held = { dayStart, until, sums };
    return [...(await add(sums, until, Number.MAX_SAFE_INTEGER)).values()];
  };
}
