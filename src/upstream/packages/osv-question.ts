import type { EcosystemName } from './ecosystems.ts';

/** A package, and one version of it or all that were published. Name and version in the form that `ECOSYSTEMS` gives. */
export interface OsvQuestion {
  readonly ecosystem: EcosystemName;
  readonly name: string;
  readonly version: string | null;
}
