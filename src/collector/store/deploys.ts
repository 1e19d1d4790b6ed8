import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { type BlockPlace, createChainFacts } from './facts.ts';

// Reads of the contracts that transactions created: pages of them, one by its address, those of the same code.

export interface Deploy {
  readonly address: `0x${string}`;
  readonly deployer: `0x${string}`;
  readonly transaction: `0x${string}`;
  readonly block: number;
  /** Unix seconds. */
  readonly at: number;
  /** Null until the contract's code was read. */
  readonly codeBytes: number | null;
  /** What it seems to be; null when nothing is known. */
  readonly label: string | null;
}

export interface DeployDetail extends Deploy {
  /** keccak-256; null until the code was read, and of a contract without code. */
  readonly codeHash: `0x${string}` | null;
  /** See `DeployKinds`; null before the first look. */
  readonly kinds: number | null;
  /** Unix seconds; null when it is not looked at again. */
  readonly lookAt: number | null;
}

/** The place of a deploy in the order of the pages: newest block first, and in a block by the transaction's hash. */
export type DeployPlace = Pick<Deploy, 'block' | 'transaction'>;

export interface DeployPage {
  readonly limit: number;
  readonly deployer: `0x${string}` | null;
  /** `other` is neither a token nor a proxy. */
  readonly kind: 'token' | 'proxy' | 'other' | null;
  /** The last deploy of the page before; null: from the newest on. */
  readonly after: DeployPlace | null;
}

export type ContractCreation = Pick<Deploy, 'deployer' | 'transaction' | 'block' | 'at' | 'label'>;

/** Lists are newest first. */
export interface DeployReads {
  deploys(limit: number): Deploy[];
  deployPage(page: DeployPage): DeployDetail[];
  /** Null when the creation is not stored: it is older than the stored blocks, or another contract's call made it. */
  creationOf(address: `0x${string}`): ContractCreation | null;
  countWithCode(codeHash: `0x${string}`): number;
  /** The first block from which on every block was read; null before it. */
  deploysSince(): BlockPlace | null;
  /** The oldest stored contract with this code, other than `except`; null when there is none. */
  withCode(codeHash: Uint8Array, except: `0x${string}`): `0x${string}` | null;
}

type Bytes<T, K extends keyof T> = Omit<T, K> & Record<K, Uint8Array>;
type Row = Bytes<Deploy, 'address' | 'deployer' | 'transaction'>;
type CreationRow = Bytes<ContractCreation, 'deployer' | 'transaction'>;
type DetailRow = Row & Pick<DeployDetail, 'kinds' | 'lookAt'> & { readonly codeHash: Uint8Array | null };

const COLUMNS = 'address, deployer, transaction_hash AS "transaction", block, at, code_bytes AS codeBytes, label';
const ORDER = 'ORDER BY block DESC, transaction_hash LIMIT @limit';
/** Each is the condition of a partial index. */
const KINDS = { token: 'kinds IN (1, 3)', proxy: 'kinds IN (2, 3)', other: 'kinds = 0' } as const;
const CREATION = `
  SELECT deployer, transaction_hash AS "transaction", block, at, label FROM deploys
   WHERE address = ? ORDER BY block DESC LIMIT 1`;
const AFTER = 'block <= @block AND (block < @block OR transaction_hash > @transaction)';

export function createDeployReads(db: Sqlite): DeployReads {
  const newest = db.prepare(`SELECT ${COLUMNS} FROM deploys ${ORDER}`);
  const creation = db.prepare(CREATION);
  const twin = db
    .prepare('SELECT address FROM deploys WHERE code_hash = ? AND address <> ? ORDER BY block LIMIT 1')
    .pluck();
  const alike = db.prepare('SELECT count(*) FROM deploys WHERE code_hash = ?').pluck();
  const facts = createChainFacts(db);
  return {
    withCode(codeHash, except) {
      const address = twin.get(codeHash, hexToBytes(except)) as Uint8Array | undefined;
      return address === undefined ? null : bytesToHex(address);
    },
    deploys: (limit) => (newest.all({ limit }) as Row[]).map(fromRow),
    deployPage({ limit, deployer, kind, after }) {
      const conditions = [
        ...(deployer === null ? [] : ['deployer = @deployer']),
        ...(kind === null ? [] : [KINDS[kind]]),
        ...(after === null ? [] : [AFTER]),
      ];
      const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
      const rows = db
        .prepare(`SELECT ${COLUMNS}, code_hash AS codeHash, kinds, look_at AS lookAt FROM deploys ${where} ${ORDER}`)
        .all({
          limit,
          ...(deployer !== null && { deployer: hexToBytes(deployer) }),
          ...(after !== null && { block: after.block, transaction: hexToBytes(after.transaction) }),
        }) as DetailRow[];
      return rows.map(({ codeHash, ...row }) => ({ ...fromRow(row), codeHash: codeHash && bytesToHex(codeHash) }));
    },
    creationOf(address) {
      const row = creation.get(hexToBytes(address)) as CreationRow | undefined;
      if (row === undefined) return null;
      return { ...row, deployer: bytesToHex(row.deployer), transaction: bytesToHex(row.transaction) };
    },
    countWithCode: (codeHash) => alike.get(hexToBytes(codeHash)) as number,
    deploysSince: () => facts.placeOf(facts.coverage('full').at(-1)?.from),
  };
}

function fromRow<R extends Row>({ address, deployer, transaction, ...rest }: R) {
  return {
    ...rest,
    address: bytesToHex(address),
    deployer: bytesToHex(deployer),
    transaction: bytesToHex(transaction),
  };
}
