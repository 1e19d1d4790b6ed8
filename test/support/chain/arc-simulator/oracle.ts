import { keccak_256 } from '@noble/hashes/sha3';
import type { Sqlite } from '../../../../src/lib/sqlite-file.ts';
import { GAS_LIMIT, type SimBlock, type SimChain } from './chain.ts';
import { codeOf, POOL_ID, type SimTransaction, USDC, V4_SWAP } from './transactions.ts';

/** Tables as plain rows; bytes as hex. */
export interface Tables {
  readonly blocks: readonly Row[];
  readonly deploys: readonly Row[];
  readonly trades: readonly Row[];
}
type Row = Record<string, unknown>;

/**
 * The rows that the tables must have for blocks `from` to `to`. They are computed from the simulated chain, and not from the answers of its nodes.
 */
export function expectedTables(chain: SimChain, from: number, to: number): Tables {
  const blocks = Array.from({ length: to - from + 1 }, (_, offset) => chain.block(from + offset));
  return {
    blocks: blocks.map(blockRow),
    deploys: blocks.flatMap((block) =>
      block.transactions
        .filter(({ created }) => created !== null)
        .sort((a, b) => (a.hash < b.hash ? -1 : 1))
        .map((tx) => deployRow(block, tx)),
    ),
    trades: blocks.flatMap(tradeRows),
  };
}

function kindOf({ to, input }: SimTransaction): string {
  if (to === null) return 'deploys';
  if (input === '0x') return 'native_transfers';
  return to === USDC ? 'token_transfers' : 'contract_calls';
}

function blockRow(block: SimBlock): Row {
  const counts: Record<string, number> = { deploys: 0, native_transfers: 0, token_transfers: 0, contract_calls: 0 };
  for (const tx of block.transactions) counts[kindOf(tx)]! += 1;
  return {
    number: block.number,
    exact: 1,
    at: block.at,
    hash: block.hash,
    parent_hash: block.parentHash,
    base_fee: Number(block.baseFee),
    next_base_fee: Number(block.nextBaseFee),
    utilisation: Number(block.gasUsed) / Number(GAS_LIMIT),
    gas_limit: Number(GAS_LIMIT),
    transactions: block.transactions.length,
    ...counts,
  };
}

function deployRow(block: SimBlock, { created, from, hash }: SimTransaction): Row {
  const code = Buffer.from(codeOf(created!).slice(2), 'hex');
  return {
    block: block.number,
    at: block.at,
    address: created,
    deployer: from,
    transaction_hash: hash,
    code_bytes: code.length,
    code_hash: code.length === 0 ? null : `0x${Buffer.from(keccak_256(code)).toString('hex')}`,
    // Nothing describes contracts there.
    label: null,
    kinds: null,
    look_at: null,
  };
}

/** The swaps of the watched pool, with the index that their log has in the block. */
function tradeRows(block: SimBlock): Row[] {
  const logs = block.transactions.flatMap((tx) => tx.logs.map((log) => ({ log, hash: tx.hash })));
  return logs.flatMap(({ log, hash }, index) => {
    if (log.topics[0] !== V4_SWAP || log.topics[1] !== POOL_ID) return [];
    const usdc = BigInt.asIntN(128, BigInt(`0x${log.data.slice(34, 66)}`));
    const eurc = BigInt.asIntN(128, BigInt(`0x${log.data.slice(98, 130)}`));
    return [
      {
        block: block.number,
        log_index: index,
        transaction_hash: hash,
        at: block.at,
        base_e9: Number(abs(eurc) * 1000n),
        usdc_e9: Number(abs(usdc) * 1000n),
      },
    ];
  });
}

const abs = (value: bigint) => (value < 0n ? -value : value);

const COLUMNS: Record<keyof Tables, string> = {
  blocks: '* FROM blocks ORDER BY number',
  deploys: '* FROM deploys ORDER BY block, transaction_hash',
  trades: 'block, log_index, transaction_hash, at, base_e9, usdc_e9 FROM trades ORDER BY block, log_index',
};

/** What the tables hold. */
export function storedTables(db: Sqlite): Tables {
  const read = (table: keyof Tables) =>
    db
      .prepare(`SELECT ${COLUMNS[table]}`)
      .all()
      .map((row) => readable(row as Row));
  return { blocks: read('blocks'), deploys: read('deploys'), trades: read('trades') };
}

function readable(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, Buffer.isBuffer(value) ? `0x${value.toString('hex')}` : value]),
  );
}

/**
 * What is wrong with the accounts of blocks 1 to `to`: an account that is missing in its hour, or a row whose first or last block does not have the
 * account. After a reorg a row may name a later first block, or an earlier last one, than the chain has.
 */
export function accountProblems(db: Sqlite, chain: SimChain, to: number): string[] {
  const blocks = Array.from({ length: to }, (_, at) => chain.block(at + 1));
  const seen = new Set<string>();
  const hours = new Set<string>();
  for (const { number, at, transactions } of blocks) {
    for (const { from, to: recipient, created } of transactions) {
      for (const account of [from, recipient, created]) {
        if (account === null) continue;
        seen.add(`${number} ${account}`);
        hours.add(`${Math.floor(at / 3600) * 3600} ${account}`);
      }
    }
  }
  const rows = db
    .prepare('SELECT hour, account, first_block, last_block FROM account_hours')
    .all()
    .map((row) => readable(row as Row));
  const stored = new Set(rows.map(({ hour, account }) => `${hour} ${account}`));
  return [
    ...[...hours].filter((entry) => !stored.has(entry)).map((entry) => `no row of ${entry}`),
    ...rows.flatMap(({ hour, account, first_block: first, last_block: last }) => [
      ...(hours.has(`${hour} ${account}`) ? [] : [`a row of ${hour} ${account}`]),
      ...[first, last].filter((block) => !seen.has(`${block} ${account}`)).map((block) => `${account} in ${block}`),
    ]),
  ];
}
