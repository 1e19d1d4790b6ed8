import type { EcosystemName } from './ecosystems.ts';

/** A package, with one version or all versions. Name and version are in the normalised form of `ECOSYSTEMS`. */
export interface OsvQuestion {
  readonly ecosystem: EcosystemName;
  readonly name: string;
  readonly version: string | null;
}
