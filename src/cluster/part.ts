import type { PrimaryLink } from './primary-link.ts';

/** The part of the service that a process runs: all of it, everything but HTTP (the primary), or HTTP only (a worker). */
export type Part =
  | { readonly kind: 'all' }
  | {
      readonly kind: 'primary';
      /** Boot ids of the API processes that may be alive. */
      readonly living: () => readonly string[];
    }
  | {
      readonly kind: 'worker';
      readonly bootId: string;
      /** The id of the primary's run, the same for all workers. */
      readonly runId: string;
      readonly link: PrimaryLink;
    };

export const WHOLE: Part = { kind: 'all' };
