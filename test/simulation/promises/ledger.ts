import { existsSync } from 'node:fs';
import { join } from 'node:path';
import RealDatabase from 'better-sqlite3';
import { LEDGER_QUERIES } from '../seam.ts';
import { idleConnectionTo } from '../service/sqlite.ts';
import { SETTLEMENT } from '../world/chain/channel-terms.ts';
import { type Hex, toHex } from '../world/chain/keys.ts';
import { USDC } from '../world/chain/token.ts';
import type { World } from '../world/world.ts';

/** One sale as the ledger's file has it. */
export interface SaleRow {
  readonly payer: Hex;
  readonly nonce: Hex;
  readonly rail: 'usdc' | 'gateway' | 'channels';
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
  readonly reservedAt: number;
  /** What the call costs; null in rows of an earlier version. */
  readonly price: bigint | null;
  /** Of a sale from a channel: the channel, and what it had charged in all afterwards. */
  readonly channelId: Hex | null;
  readonly max: bigint | null;
}

/** One payment channel as the ledger knows it, amounts in base units. */
export interface ChannelRow {
  readonly id: Hex;
  readonly charged: bigint;
  readonly writtenOff: bigint;
  readonly balance: bigint;
  readonly claimed: bigint;
  /** The sum of its sales' prices. */
  readonly sold: bigint;
  /** Of the last charged voucher. */
  readonly signature: Uint8Array | null;
}

/** One spent proof. */
export interface ClaimRow {
  readonly paymentHash: string;
  readonly state: 'claimed' | 'delivered' | null;
  readonly grants: boolean;
  readonly claimedAt: number;
  readonly deliveredAt: number | null;
}

/** A ledger's content, read from its file. */
export interface LedgerRows {
  readonly file: string;
  /** Of the second service for the same seller. */
  readonly isTwin: boolean;
  readonly sales: readonly SaleRow[];
  readonly claims: readonly ClaimRow[];
  /** Kinds of claims and refunds that have not ended. */
  readonly openOperations: readonly string[];
  /** What its own books say that the chain lacks. */
  readonly missing: readonly string[];
}

const TWIN = '/twin/';

/** The ledgers of all instances: one file each, or one for all. */
function filesOf({ scenario, folder, instances, ledger }: World): string[] {
  const own = instances
    .filter(({ name }) => scenario.instances === 1 || name === 'twin')
    .map(({ name }) => join(folder, name, LEDGER_QUERIES.file));
  const files = scenario.instances > 1 ? [ledger.file, ...own] : own;
  return files.filter((file) => existsSync(file));
}

export const readLedgers = (world: World): LedgerRows[] => filesOf(world).map(readLedger);

/** Reads the payment channels of all ledgers, and nothing else: that is done after each move. */
export const readChannels = (world: World): ChannelRow[] =>
  filesOf(world).flatMap((file) => reading(file, (queries) => queries.channels.all().map(channelRowOf)));

function readLedger(file: string): LedgerRows {
  return reading(file, ({ sales, claims, openOperations, missing }) => ({
    file,
    isTwin: file.includes(TWIN),
    sales: sales.all().map(saleOf),
    claims: claims.all().map(claimOf),
    openOperations: openOperations.all().map(({ kind }) => kind as string),
    missing: missing.all().map(({ rail, item, detail }) => `${rail} ${item}: ${detail}`),
  }));
}

type Row = Record<string, unknown>;
type Queries = Readonly<Record<Exclude<keyof typeof LEDGER_QUERIES, 'file'>, { all(): Row[] }>>;

/** The queries of each connection: preparing them takes longer than what they read. */
const prepared = new WeakMap<RealDatabase.Database, Queries>();

function queriesOf(db: RealDatabase.Database): Queries {
  const known = prepared.get(db);
  if (known) return known;
  const lazy = (text: string) => {
    let statement: RealDatabase.Statement<[], Row> | null = null;
    return {
      all: () => {
        statement ??= db.prepare<[], Row>(text);
        return statement.all();
      },
    };
  };
  const { sales, claims, channels, openOperations, missing } = LEDGER_QUERIES;
  const queries = {
    sales: lazy(sales),
    claims: lazy(claims),
    channels: lazy(channels),
    openOperations: lazy(openOperations),
    missing: lazy(missing),
  };
  prepared.set(db, queries);
  return queries;
}

/**
 * Reads a ledger's file: over a connection that the service has open to it, because opening another one takes longer than all reads of a step, and over
 * one of its own where there is none. In between two transactions both see the same, which is what is committed.
 */
function reading<T>(file: string, read: (queries: Queries) => T): T {
  const open = idleConnectionTo(file);
  if (open) return read(queriesOf(open));
  const db = new RealDatabase(file, { readonly: true });
  try {
    return read(queriesOf(db));
  } finally {
    db.close();
  }
}

const bigOrNull = (value: unknown): bigint | null => (value === null ? null : BigInt(value as number));
const railOf = (contract: Hex): SaleRow['rail'] =>
  contract === USDC ? 'usdc' : contract === SETTLEMENT ? 'channels' : 'gateway';

function channelRowOf({ id, signature, ...amounts }: Row): ChannelRow {
  const big = (name: string): bigint => BigInt(amounts[name] as number);
  return {
    id: toHex(id as Uint8Array),
    charged: big('charged'),
    writtenOff: big('writtenOff'),
    sold: big('sold'),
    balance: big('balance'),
    claimed: big('claimed'),
    signature: signature as Uint8Array | null,
  };
}

function saleOf({ payer, nonce, contract, amount, payTo, validAfter, validBefore, ...rest }: Row): SaleRow {
  return {
    ...(rest as unknown as SaleRow),
    payer: toHex(payer as Uint8Array),
    nonce: toHex(nonce as Uint8Array),
    payTo: toHex(payTo as Uint8Array),
    amount: BigInt(amount as number),
    validAfter: BigInt(validAfter as string),
    validBefore: BigInt(validBefore as string),
    rail: railOf(toHex(contract as Uint8Array)),
    price: bigOrNull(rest.price),
    max: bigOrNull(rest.max),
    channelId: rest.channelId === null ? null : toHex(rest.channelId as Uint8Array),
  };
}

function claimOf({ paymentHash, grants, ...rest }: Row): ClaimRow {
  const hash = Buffer.from(paymentHash as Uint8Array).toString('hex');
  return { ...(rest as unknown as ClaimRow), paymentHash: hash, grants: grants === 1 };
}
