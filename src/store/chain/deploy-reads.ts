import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../sqlite/database.ts';

/** A contract that a transaction created. */
export interface Deploy {
  readonly address: `0x${string}`;
  readonly deployer: `0x${string}`;
  readonly transaction: `0x${string}`;
  readonly block: number;
  /** Unix seconds. */
  readonly at: number;
  /** Null until the contract's code was read. */
  readonly codeBytes: number | null;
  readonly label: string | null;
}

/** Contracts that transactions created. */
export interface DeployReads {
  /** Newest first. */
  deploys(limit: number): Deploy[];
  /** The oldest stored contract with this code, other than `except`; null when there is none. */
  withCode(codeHash: Uint8Array, except: `0x${string}`): `0x${string}` | null;
}

type Row = Omit<Deploy, 'address' | 'deployer' | 'transaction'> &
  Record<'address' | 'deployer' | 'transaction', Uint8Array>;

export function createDeployReads(db: Sqlite): DeployReads {
  const newest = db.prepare(
    `SELECT address, deployer, transaction_hash AS "transaction", block, at, code_bytes AS codeBytes, label
       FROM deploys ORDER BY block DESC, transaction_hash LIMIT ?`,
  );
  const twin = db
    .prepare('SELECT address FROM deploys WHERE code_hash = ? AND address <> ? ORDER BY block LIMIT 1')
    .pluck();
  return {
    withCode(codeHash, except) {
      const address = twin.get(codeHash, hexToBytes(except)) as Uint8Array | undefined;
      return address === undefined ? null : bytesToHex(address);
    },
    deploys: (limit) =>
      (newest.all(limit) as Row[]).map(({ address, deployer, transaction, ...rest }) => ({
        address: bytesToHex(address),
        deployer: bytesToHex(deployer),
        transaction: bytesToHex(transaction),
        ...rest,
      })),
  };
}
