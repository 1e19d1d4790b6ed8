import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../sqlite/database.ts';

/** Who created a contract, by which transaction. */
export interface ContractCreation {
  readonly deployer: `0x${string}`;
  readonly transaction: `0x${string}`;
  readonly block: number;
  /** Unix seconds. */
  readonly at: number;
  /** What the contract seemed to be when its code was read; null when nothing was known. */
  readonly label: string | null;
}

/** Single contracts that transactions created. */
export interface ContractReads {
  /** Null for a contract whose creation is not stored: it is older than the stored blocks, or another contract's call made it. */
  creationOf(address: `0x${string}`): ContractCreation | null;
}

const CREATION = `
  SELECT deployer, transaction_hash AS "transaction", block, at, label FROM deploys WHERE address = ? ORDER BY block DESC LIMIT 1`;

type Row = Record<'deployer' | 'transaction', Uint8Array> & Pick<ContractCreation, 'block' | 'at' | 'label'>;

export function createContractReads(db: Sqlite): ContractReads {
  const creation = db.prepare(CREATION);
  return {
    creationOf(address) {
      const row = creation.get(hexToBytes(address)) as Row | undefined;
      return row === undefined
        ? null
        : { ...row, deployer: bytesToHex(row.deployer), transaction: bytesToHex(row.transaction) };
    },
  };
}
