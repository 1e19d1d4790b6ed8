import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../sqlite/database.ts';
import type { PoolRow } from './rows.ts';

/** A pool of a watched token against USDC. */
export interface CollectedPool extends Pick<PoolRow, 'venue' | 'kind' | 'tokenFirst' | 'usdcDecimals'> {
  readonly emitter: `0x${string}`;
  readonly token: `0x${string}`;
}

/** Pools that the collector found. */
export interface PoolReads {
  /** The pool with this id (its address, or a v4 pool id); null for a pool that is not collected. */
  pool(id: `0x${string}`): CollectedPool | null;
}

type Row = Omit<CollectedPool, 'tokenFirst' | 'emitter' | 'token'> & {
  readonly tokenFirst: number;
  readonly emitter: Uint8Array;
  readonly token: Uint8Array;
};

export function createPoolReads(db: Sqlite): PoolReads {
  const byId = db.prepare(
    `SELECT venue, kind, emitter, token, token_first AS tokenFirst, usdc_decimals AS usdcDecimals FROM pools WHERE id = ?`,
  );
  return {
    pool(id) {
      const row = byId.get(hexToBytes(id)) as Row | undefined;
      if (row === undefined) return null;
      const { emitter, token, tokenFirst } = row;
      return { ...row, emitter: bytesToHex(emitter), token: bytesToHex(token), tokenFirst: tokenFirst === 1 };
    },
  };
}
