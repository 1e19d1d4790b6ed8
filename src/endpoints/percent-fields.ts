import { z } from 'zod';
import { formatUnits } from '../lib/units.ts';

/** Four decimals of a percent: a hundredth of a basis point. */
const DECIMALS = 4;

const percent = z.string().regex(/^-?\d+(\.\d{1,4})?$/);

/** A percentage with its sign. `description` says what it is a percentage of. */
export function percentField(description: string) {
  return percent.meta({ description: `${description}; in percent, at most ${DECIMALS} decimals, negative for a fall` });
}

/** The percentage that a part is of all. `description` says both. */
export function percentOfAllField(description: string) {
  return percent.nullable().meta({ description: `${description}; at most ${DECIMALS} decimals` });
}

/** `part` of `whole` in percent, rounded once, half away from zero. `whole` must be positive. */
export function percentOf(part: bigint, whole: bigint): string {
  const size = (part < 0n ? -part : part) * 100n * 10n ** BigInt(DECIMALS);
  const rounded = (2n * size + whole) / (2n * whole);
  return formatUnits(part < 0n ? -rounded : rounded, DECIMALS);
}
