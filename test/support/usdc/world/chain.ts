import { type Hex, keccak256, parseTransaction } from 'viem';
import { RpcError } from '../../../../src/chain/rpc/wire.ts';
import { bytesToHex } from '../../../../src/lib/hex.ts';
import type { Intent } from '../../../../src/payment/settler.ts';
import type { TransactionReceipt } from '../../../../src/payment/usdc/evidence.ts';
import { AUTHORIZATION_CANCELED } from '../../../../src/payment/usdc/token.ts';
import { USDC } from '../payments.ts';
import { paidReceipt } from '../token-node.ts';
import type { Dice } from './dice.ts';
import { type Deed, type Payer, type Scenario, START_MS } from './scenario.ts';

/** Arc's block time, in milliseconds. */
export const BLOCK_MS = 500;
const BLOCK_GAS = 30_000_000n;
const FIRST_BLOCK = 100;
const GWEI = 10n ** 9n;
const HIDDEN_MS = 4000;

interface Pooled {
  readonly hash: Hex;
  readonly raw: Hex;
  readonly nonce: number;
  readonly gas: bigint;
  readonly maxFeePerGas: bigint;
  readonly isBatch: boolean;
}

interface Use {
  readonly block: number;
  readonly receipt: TransactionReceipt;
  /** No log shows it before this time. */
  readonly hiddenUntilMs: number;
}

const hex = (value: bigint | number): string => `0x${value.toString(16)}`;

/** A chain with one relayer: a pool by nonce, a block each half second, a token, and payers that behave as the scenario says. */
export function createWorldChain(scenario: Scenario, dice: Dice, nowMs: () => number) {
  const intents = scenario.bursts.flatMap((burst) => burst.intents);
  const pool = new Map<number, Pooled>();
  const uses = new Map<string, Use>();
  const receipts = new Map<string, TransactionReceipt>();
  const counts = [0];
  let head = FIRST_BLOCK;
  let mined = 0;
  let baseFee = 20n * GWEI;

  const keyOf = ({ authorization }: Intent): string => bytesToHex(authorization.nonce);
  const isDuring = (kind: string): boolean =>
    scenario.faults.some((fault) => fault.kind === kind && fault.fromMs <= sinceMs() && sinceMs() < fault.toMs);
  const sinceMs = (): number => nowMs() - START_MS;
  const payerOf = ({ authorization }: Intent): Payer =>
    scenario.payers.get(bytesToHex(authorization.from)) ?? { kind: 'plain', fromMs: 0 };
  const hasTurned = (payer: Payer): boolean => payer.fromMs <= sinceMs();
  const timeOf = (block: number): number => Math.floor((START_MS + (block - FIRST_BLOCK) * BLOCK_MS) / 1000);

  function burns(intent: Intent): boolean {
    const payer = payerOf(intent);
    return payer.kind === 'griefer' || (payer.kind === 'grower' && hasTurned(payer));
  }

  /** Whether a transfer would succeed. A refuser's succeeds in a simulation only. */
  function goesThrough(intent: Intent, isSimulated: boolean): boolean {
    const payer = payerOf(intent);
    if (isDuring('token') || uses.has(keyOf(intent)) || burns(intent)) return false;
    if (payer.kind === 'refuser') return isSimulated;
    if (payer.kind === 'poor' && hasTurned(payer)) return false;
    return BigInt(timeOf(head)) < intent.authorization.validBefore;
  }

  /** The intents whose authorizations a call holds, in its order. */
  function intentsIn(data: string): Intent[] {
    const found = intents.map((intent) => ({ intent, at: data.indexOf(keyOf(intent).slice(2)) }));
    return found
      .filter(({ at }) => at !== -1)
      .sort((a, b) => a.at - b.at)
      .map(({ intent }) => intent);
  }

  function execute(transaction: Pooled): TransactionReceipt {
    const within = intentsIn(transaction.raw);
    const isOut = within.some(burns);
    const settled = isOut ? [] : within.filter((intent) => goesThrough(intent, false));
    const dear = !transaction.isBatch && within.some((intent) => payerOf(intent).kind === 'dear');
    const used = dear ? (transaction.gas * 7n) / 10n : 60_000n + 70_000n * BigInt(within.length);
    const gasUsed = isOut || used > transaction.gas ? transaction.gas : used;
    const isReverted = isOut || (!transaction.isBatch && settled.length === 0);
    return paidReceipt(
      settled.map(({ authorization }) => authorization),
      {
        transactionHash: transaction.hash,
        blockNumber: hex(head),
        gasUsed: hex(gasUsed),
        effectiveGasPrice: hex(baseFee + GWEI / 10n),
        status: isReverted ? '0x0' : '0x1',
      },
    );
  }

  function mine(transaction: Pooled): void {
    const receipt = execute(transaction);
    for (const intent of intentsIn(transaction.raw))
      if (receipt.logs.some(({ topics }) => topics[2] === keyOf(intent)))
        uses.set(keyOf(intent), { block: head, receipt, hiddenUntilMs: 0 });
    receipts.set(transaction.hash, receipt);
    pool.delete(transaction.nonce);
    mined++;
  }

  return {
    head: () => head,
    mined: () => mined,
    baseFee: () => baseFee,
    isDuring,
    intentsIn,
    goesThrough,
    receiptOf: (hash: string): TransactionReceipt | null => receipts.get(hash) ?? null,
    countAt: (block: number): number => counts[Math.max(0, block - FIRST_BLOCK)] ?? mined,
    timeOf,
    hasCode(address: string): boolean {
      const payer = scenario.payers.get(address);
      if (!payer) return false;
      return ['wallet', 'griefer', 'refuser'].includes(payer.kind) || (payer.kind === 'grower' && hasTurned(payer));
    },
    balanceOf(address: string): bigint {
      const payer = scenario.payers.get(address);
      return payer?.kind === 'poor' && hasTurned(payer) ? 0n : 10n ** 9n;
    },
    isUsedAt: (nonce: string, block: number): boolean => (uses.get(nonce)?.block ?? Number.POSITIVE_INFINITY) <= block,
    endOf(nonce: string): { transactionHash: string; topics: readonly string[] } | null {
      const use = uses.get(nonce);
      const log = use?.receipt.logs.find(({ topics }) => topics[2] === nonce);
      return use && log && use.hiddenUntilMs <= sinceMs()
        ? { topics: log.topics, transactionHash: use.receipt.transactionHash }
        : null;
    },
    /** Accepts a transaction, or throws the reason. `isKept` is false where the node accepts it but drops it. */
    take(raw: Hex, isKept: boolean): string {
      const { nonce = 0, gas = 0n, maxFeePerGas = 0n, to } = parseTransaction(raw);
      const hash = keccak256(raw);
      if (receipts.has(hash) || pool.get(nonce)?.hash === hash) throw new RpcError(-32000, 'already known');
      if (nonce < mined) throw new RpcError(-32000, 'nonce too low');
      const other = pool.get(nonce);
      if (other && maxFeePerGas * 10n < other.maxFeePerGas * 11n)
        throw new RpcError(-32000, 'replacement transaction underpriced');
      if (isKept) pool.set(nonce, { hash, raw, nonce, gas, maxFeePerGas, isBatch: to !== USDC });
      return hash;
    },
    /** A third party's transaction. */
    act({ intent, kind }: Deed): void {
      if (uses.has(keyOf(intent)) || BigInt(timeOf(head)) >= intent.authorization.validBefore) return;
      const { from, nonce } = intent.authorization;
      const transactionHash = keccak256(nonce);
      const changes = { transactionHash, blockNumber: hex(head) };
      const topic = (part: Uint8Array) => `0x${Buffer.from(part).toString('hex').padStart(64, '0')}`;
      const logs = [{ address: USDC, topics: [AUTHORIZATION_CANCELED, topic(from), topic(nonce)], data: '0x' }];
      const receipt =
        kind === 'cancelled' ? paidReceipt([], { ...changes, logs }) : paidReceipt([intent.authorization], changes);
      receipts.set(transactionHash, receipt);
      const hiddenUntilMs = kind === 'hidden' ? sinceMs() + HIDDEN_MS + dice('hidden', intent.id) * 4000 : 0;
      uses.set(keyOf(intent), { block: head, receipt, hiddenUntilMs });
    },
    /** Another transaction of the relayer's key. */
    useNonce(): void {
      pool.delete(mined);
      mined++;
    },
    /** Makes the next block, with the pool's transactions that pay its base fee. */
    produce(): void {
      head++;
      baseFee = isDuring('dear') ? (baseFee * 11n) / 10n : baseFee > 20n * GWEI ? (baseFee * 9n) / 10n : baseFee;
      let left = BLOCK_GAS;
      for (let next = pool.get(mined); next; next = pool.get(mined)) {
        const waits = isDuring('congested') || dice('waits', next.hash, head) < 0.2;
        if (waits || next.maxFeePerGas < baseFee || next.gas > left) break;
        left -= next.gas;
        mine(next);
      }
      counts[head - FIRST_BLOCK] = mined;
    },
  };
}

export type WorldChain = ReturnType<typeof createWorldChain>;
