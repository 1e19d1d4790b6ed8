import { until } from '../service/workers.ts';
import type { RailFixture, RailUnderTest } from './rail-fixture.ts';

/** The funds of a payer of a fixture, in base units: enough for every call of the suite. */
export const FUNDS = 100_000n;

/** USDC base units of a price. */
const usdcUnits = (priceUsd: string): bigint => BigInt(Math.round(Number(priceUsd) * 1e6));

/** A rail whose payments are signed before the call and settled after it, in USDC's base units. It can show everything that the suite asks for. */
export function signedRail(name: string, open: RailFixture['open']): RailFixture {
  return { name, kind: 'signed-first', surface: 'paid', cannot: {}, unitsOf: usdcUnits, open };
}

/** A party that executes settlements: a way to stop them, and the number of requests for one so far. */
interface Executor {
  hold(): () => void;
  asked(): number;
}

/** Stops all settlements of this party until `heal` is called. */
export function hangAt({ hold, asked }: Executor): Awaited<ReturnType<RailUnderTest['hang']>> {
  const [heal, before] = [hold(), asked()];
  return {
    arrived: () => until('a settlement waits where it is executed', () => asked() > before),
    heal: async () => heal(),
  };
}
