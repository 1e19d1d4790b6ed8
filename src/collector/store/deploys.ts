import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { createChainFacts } from './facts.ts';

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

/** The same with all that is stored of it. */
export interface DeployDetail extends Deploy {
  /** keccak-256; null until the code was read, and of a contract without code. */
  readonly codeHash: `0x${string}` | null;
  /** See `DeployKinds`; null until the contract was looked at. */
  readonly kinds: number | null;
  /** Unix seconds; null when it is not looked at again. */
  readonly lookAt: number | null;
}

/** The place of a deploy in the order of the pages: newest block first, and in a block by the transaction's hash. */
export type DeployPlace = Pick<Deploy, 'block' | 'transaction'>;

/** What a page of deploys holds. */
export interface DeployPage {
  readonly limit: number;
  readonly deployer: `0x${string}` | null;
  /** `other` is neither a token nor a proxy. */
  readonly kind: 'token' | 'proxy' | 'other' | null;
  /** The last deploy of the page before; null: from the newest on. */
  readonly after: DeployPlace | null;
}

/** Contracts that transactions created. */
export interface DeployReads {
  /** Newest first. */
  deploys(limit: number): Deploy[];
  /** Newest first. */
  deployPage(page: DeployPage): DeployDetail[];
  /** How many stored contracts have this code. */
  countWithCode(codeHash: `0x${string}`): number;
  /** The first block from which on every block was read, with its time. Null before the first. */
  deploysSince(): { readonly block: number; readonly at: number } | null;
  /** The oldest stored contract with this code, other than `except`; null when there is none. */
  withCode(codeHash: Uint8Array, except: `0x${string}`): `0x${string}` | null;
}

type Bytes<T, K extends keyof T> = Omit<T, K> & Record<K, Uint8Array>;
type Row = Bytes<Deploy, 'address' | 'deployer' | 'transaction'>;
type DetailRow = Row & Pick<DeployDetail, 'kinds' | 'lookAt'> & { readonly codeHash: Uint8Array | null };

const COLUMNS = 'address, deployer, transaction_hash AS "transaction", block, at, code_bytes AS codeBytes, label';
const ORDER = 'ORDER BY block DESC, transaction_hash LIMIT @limit';
/** Each is the condition of a partial index. */
const KINDS = { token: 'kinds IN (1, 3)', proxy: 'kinds IN (2, 3)', other: 'kinds = 0' } as const;
const AFTER = 'block <= @block AND (block < @block OR transaction_hash > @transaction)';

export function createDeployReads(db: Sqlite): DeployReads {
  const newest = db.prepare(`SELECT ${COLUMNS} FROM deploys ${ORDER}`);
  const twin = db
    .prepare('SELECT address FROM deploys WHERE code_hash = ? AND address <> ? ORDER BY block LIMIT 1')
    .pluck();
  const alike = db.prepare('SELECT count(*) FROM deploys WHERE code_hash = ?').pluck();
  const timeOf = db.prepare('SELECT at FROM blocks WHERE number = ?').pluck();
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
    countWithCode: (codeHash) => alike.get(hexToBytes(codeHash)) as number,
    deploysSince() {
      const block = facts.coverage('full').at(-1)?.from;
      const at = block === undefined ? undefined : (timeOf.get(block) as number | undefined);
      return block === undefined || at === undefined ? null : { block, at };
    },
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

type ContractRow = Record<'deployer' | 'transaction', Uint8Array> & Pick<ContractCreation, 'block' | 'at' | 'label'>;

export function createContractReads(db: Sqlite): ContractReads {
  const creation = db.prepare(CREATION);
  return {
    creationOf(address) {
      const row = creation.get(hexToBytes(address)) as ContractRow | undefined;
      return row === undefined
        ? null
        : { ...row, deployer: bytesToHex(row.deployer), transaction: bytesToHex(row.transaction) };
    },
  };
}

/** A burn of the project token, or a payout of its distributor; `amount` in base units of the token, or of USDC's ERC-20 face. */
export interface TokenEvent {
  readonly kind: 'burn' | 'payout';
  readonly amount: bigint;
  /** The account that burned, or that was paid. */
  readonly account: `0x${string}`;
  readonly block: number;
  /** Unix seconds. */
  readonly at: number;
  readonly transaction: `0x${string}`;
}

/** Sums of one kind of event. */
interface TokenTotals {
  readonly total: bigint;
  /** The part since the given time. */
  readonly recent: bigint;
  readonly events: number;
  /** Distinct accounts. */
  readonly accounts: number;
}

export interface TokenReads {
  /** The first block whose logs were ever searched, with its time. Null before the first; the time is that of its hour once its row is rolled up. */
  searchedSince(): { readonly block: number; readonly at: number | null } | null;
  tokenTotals(kind: TokenEvent['kind'], since: number): TokenTotals;
  /** Newest first. */
  tokenEvents(limit: number): TokenEvent[];
}

const RECENT = `SELECT kind, amount, account, block, at, transaction_hash AS "transaction" FROM token_events
  ORDER BY block DESC, log_index DESC LIMIT ?`;

type TokenRow = { account: Uint8Array; transaction: Uint8Array; amount: string } & Pick<
  TokenEvent,
  'kind' | 'block' | 'at'
>;

export function createTokenReads(db: Sqlite): TokenReads {
  const amounts = db.prepare('SELECT amount, at FROM token_events WHERE kind = ?').raw();
  const accounts = db.prepare('SELECT count(DISTINCT account) FROM token_events WHERE kind = ?').pluck();
  const recent = db.prepare(RECENT);
  const facts = createChainFacts(db);
  const timeOf = db
    .prepare('SELECT coalesce((SELECT at FROM blocks WHERE number = ?), (SELECT min(at) FROM hours))')
    .pluck();
  return {
    searchedSince() {
      const starts = [facts.first(), facts.coverage('logs')[0]?.from ?? null].filter((block) => block !== null);
      if (starts.length === 0) return null;
      const block = Math.min(...starts);
      return { block, at: timeOf.get(block) as number | null };
    },
    tokenTotals(kind, since) {
      let [total, later, events] = [0n, 0n, 0];
      // Amounts with 18 decimals do not fit SQLite's integers.
      for (const row of amounts.iterate(kind)) {
        const [text, at] = row as [string, number];
        const amount = BigInt(text);
        total += amount;
        if (at >= since) later += amount;
        events += 1;
      }
      return { total, recent: later, events, accounts: accounts.get(kind) as number };
    },
    tokenEvents: (limit) =>
      (recent.all(limit) as TokenRow[]).map(({ account, transaction, amount, ...rest }) => ({
        ...rest,
        amount: BigInt(amount),
        account: bytesToHex(account),
        transaction: bytesToHex(transaction),
      })),
  };
}
