import type { PrimaryLink } from './primary-link.ts';

/** What a process does of the service: all of it, everything but HTTP for its workers, or HTTP alone as one of them. */
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
      /** Of the primary's run, the same for all workers. */
      readonly runId: string;
      readonly link: PrimaryLink;
    };

export const WHOLE: Part = { kind: 'all' };
