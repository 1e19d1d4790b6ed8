import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn } from '../catalogue/paths.ts';
import type { Requirement, RequirementOf } from './requirement.ts';

/** The requirement of the most expensive USDC route: with it as ceiling a client can buy any route. Undefined when no route is sold. */
export function dearestRequirement(
  catalogue: readonly Endpoint<never>[],
  requirementOf: RequirementOf,
): Requirement | undefined {
  const [first, ...more] = entriesOn(catalogue, 'paid').map(requirementOf);
  return more.reduce((most, next) => (most && BigInt(most.amount) >= BigInt(next.amount) ? most : next), first);
}
