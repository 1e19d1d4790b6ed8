import { readFileSync } from 'node:fs';
import type { Abi, Hex } from 'viem';

/** A compiled contract: `bytecode` creates it, `runtime` is the code on the chain afterwards. */
export interface Artifact {
  readonly abi: Abi;
  readonly bytecode: Hex;
  readonly runtime: Hex;
}

/** The contracts of this directory. */
export type ArtifactName =
  | 'BatchSettlement'
  | 'DepositCollector'
  | 'LegacyToken'
  | 'Multicall3'
  | 'Oracle'
  | 'PayerReader'
  | 'SmartWallet'
  | 'StoppedUsdc'
  | 'SystemLog'
  | 'Token'
  | 'Trader'
  | 'Usdc';

/** Committed, so that nothing is compiled to run; `npm run contracts` writes it. */
export const ARTIFACTS_FILE = new URL('./artifacts.json', import.meta.url);

/** The compiled contracts by name, read once. */
export const artifacts: Readonly<Record<ArtifactName, Artifact>> = JSON.parse(readFileSync(ARTIFACTS_FILE, 'utf8'));
