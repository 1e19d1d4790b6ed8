import type { Endpoint } from '../catalogue/endpoint.ts';

/** The part of a payment requirement that documents show. The payment module creates it; documents define no term themselves. */
export interface Requirement {
  readonly scheme: string;
  readonly network: string;
  readonly asset: string;
  readonly amount: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
}

/** Gives the requirement under which a priced endpoint is sold. */
export type RequirementOf = (endpoint: Endpoint<never>) => Requirement;
