import { existsSync } from 'node:fs';
import { join } from 'node:path';
import RealDatabase from 'better-sqlite3';
import { LEDGER_QUERIES } from '../seam.ts';
import { type Hex, toHex } from '../world/chain/keys.ts';
import { USDC } from '../world/chain/token.ts';
import type { World } from '../world/world.ts';

/** One sale as the ledger's file has it. */
export interface SaleRow {
  readonly payer: Hex;
  readonly nonce: Hex;
  readonly rail: 'usdc' | 'gateway';
  readonly state: 'reserved' | 'settling' | 'unknown' | 'settled' | 'failed';
  readonly amount: bigint;
  readonly reason: string | null;
  readonly hash: Uint8Array | null;
  readonly signature: Uint8Array | null;
  readonly deliveries: number;
  readonly endedAt: number | null;
  readonly payTo: Hex;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
}

/** One spent proof. */
export interface ClaimRow {
  readonly paymentHash: string;
  readonly state: 'claimed' | 'delivered' | null;
  readonly grants: boolean;
  readonly claimedAt: number;
  readonly deliveredAt: number | null;
}

/** A ledger's content, read from its file by a reader of its own. */
export interface LedgerRows {
  readonly file: string;
  /** Of the second service for the same seller. */
  readonly isTwin: boolean;
  readonly sales: readonly SaleRow[];
  readonly claims: readonly ClaimRow[];
}

const TWIN = '/twin/';

/** Reads the ledgers of all instances: one file each, or one for all. */
export function readLedgers({ scenario, folder, instances, ledger }: World): LedgerRows[] {
  const own = instances
    .filter(({ name }) => scenario.instances === 1 || name === 'twin')
    .map(({ name }) => join(folder, name, LEDGER_QUERIES.file));
  const files = scenario.instances > 1 ? [ledger.file, ...own] : own;
  return files.filter((file) => existsSync(file)).map(readLedger);
}

function readLedger(file: string): LedgerRows {
  const db = new RealDatabase(file, { readonly: true });
  try {
    const sales = db.prepare<[], Row>(LEDGER_QUERIES.sales).all().map(saleOf);
    const claims = db.prepare<[], Row>(LEDGER_QUERIES.claims).all().map(claimOf);
    return { file, isTwin: file.includes(TWIN), sales, claims };
  } finally {
    db.close();
  }
}

type Row = Record<string, unknown>;

function saleOf({ payer, nonce, contract, amount, payTo, validAfter, validBefore, ...rest }: Row): SaleRow {
  return {
    ...(rest as unknown as SaleRow),
    ...{ payer: toHex(payer as Uint8Array), nonce: toHex(nonce as Uint8Array), payTo: toHex(payTo as Uint8Array) },
    ...{
      amount: BigInt(amount as number),
      validAfter: BigInt(validAfter as string),
      validBefore: BigInt(validBefore as string),
    },
    rail: toHex(contract as Uint8Array) === USDC ? 'usdc' : 'gateway',
  };
}

function claimOf({ paymentHash, grants, ...rest }: Row): ClaimRow {
  const hash = Buffer.from(paymentHash as Uint8Array).toString('hex');
  return { ...(rest as unknown as ClaimRow), paymentHash: hash, grants: grants === 1 };
}
