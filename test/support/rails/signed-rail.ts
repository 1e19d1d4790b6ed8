import { until } from '../service/workers.ts';
import type { OpenRail, RailFixture } from './rail-fixture.ts';

/** What a payer of a fixture holds, in base units: enough for every call of the suite. */
export const FUNDS = 100_000n;

/** USDC base units of a price. */
const usdcUnits = (priceUsd: string): bigint => BigInt(Math.round(Number(priceUsd) * 1e6));

/** A rail whose payments are signed before the call and settled after it, in USDC's base units. It shows everything that the suite wants to see. */
export function signedRail(name: string, open: RailFixture['open']): RailFixture {
  return { name, kind: 'signed', surface: 'paid', cannot: {}, unitsOf: usdcUnits, open };
}

/** A party that executes settlements: a way to hold them, and how often it was asked for one. */
interface Executor {
  hold(): () => void;
  asked(): number;
}

/** Settlements that hang at this party from now on. */
export function hangAt({ hold, asked }: Executor): Awaited<ReturnType<OpenRail['hang']>> {
  const [heal, before] = [hold(), asked()];
  return {
    arrived: () => until('a settlement waits where it is executed', () => asked() > before),
    heal: async () => heal(),
  };
}
