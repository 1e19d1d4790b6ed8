import { WORLD } from '../../engine/owner.ts';
import type { Scheduler } from '../../engine/scheduler.ts';
import { createChannelTerms } from './channel-terms.ts';
import { createExecutor, envOf, intrinsicGas } from './execute.ts';
import type { CallResult, Log } from './frame.ts';
import { type Hex, keccak, toHex } from './keys.ts';
import { createMempool } from './mempool.ts';
import { balanceOf, createState, moveWei, type View } from './state.ts';
import { createToken, TRANSFER, USDC } from './token.ts';
import { readTransaction, type Transaction } from './transactions.ts';

export const BLOCK_MS = 500;
export const BLOCK_GAS = 30_000_000;
const FLOOR_FEE = 20_000_000_000n;
/** Base fee and tip are both the beneficiary's on Arc. */
const BENEFICIARY: Hex = '0x3141592653589793238462643383279502884197';

/** A mined transaction. */
export interface Mined {
  readonly transaction: Transaction;
  readonly block: number;
  readonly index: number;
  readonly ok: boolean;
  readonly gasUsed: number;
  readonly gasPrice: bigint;
  readonly logs: readonly Log[];
  /** Why it reverted; empty where it did not. */
  readonly why: string;
}

/** One movement of the token, as its own log tells it. */
export interface Movement {
  readonly from: Hex;
  readonly to: Hex;
  readonly units: bigint;
  readonly hash: Hex;
  readonly block: number;
}

interface ChainOptions {
  readonly scheduler: Scheduler;
  readonly chainId: number;
  readonly genesisMs: number;
  readonly relayer: Hex;
}

/** A call as a node takes it. */
export interface Call {
  readonly from: Hex;
  /** Null runs `data` as creation code. */
  readonly to: Hex | null;
  readonly data: Hex;
  readonly gas: number;
  readonly gasPrice: bigint;
}

interface Change {
  readonly apply: (view: View) => void;
  /** Before the block's transactions, or after them. */
  readonly first: boolean;
}

/**
 * The chain: blocks every half second with whole-second times, made when there is something to put into them or somebody looks. What nobody could
 * have seen needs no block of its own.
 */
export function createChain({ scheduler, chainId, genesisMs, relayer }: ChainOptions) {
  const state = createState();
  const token = createToken(chainId);
  const channelTerms = createChannelTerms(chainId);
  const executor = createExecutor(token, channelTerms);
  const pool = createMempool();
  const mined = new Map<Hex, Mined>();
  const allMined: Mined[] = [];
  const blocks = new Map<number, Mined[]>();
  const movements: Movement[] = [];
  const logs: (Log & { readonly block: number; readonly hash: Hex })[] = [];
  const changes: Change[] = [];
  const fees: { fromBlock: number; fee: bigint }[] = [];
  let made = 0;
  const stalls: { after: number; lostMs: number }[] = [];
  let stalledMs = 0;
  let stalledUntilMs = 0;
  let alarm = false;
  const submitListeners: ((transaction: Transaction) => void)[] = [];

  /** The newest number that time allows. */
  function due(): number {
    const now = scheduler.nowMs();
    const lost = stalledMs - Math.max(0, stalledUntilMs - now);
    return Math.max(0, Math.floor((now - genesisMs - lost) / BLOCK_MS));
  }

  const timeOf = (block: number): number => {
    const lostMs = stalls.findLast(({ after }) => after < block)?.lostMs ?? 0;
    return Math.floor((genesisMs + block * BLOCK_MS + lostMs) / 1000);
  };
  const feeAt = (block: number): bigint => fees.findLast(({ fromBlock }) => fromBlock <= block)?.fee ?? FLOOR_FEE;
  const hashOf = (block: number): Hex => toHex(keccak(Buffer.from(`block ${chainId} ${block}`)));

  /** Makes the blocks that are due. */
  function head(): number {
    const newest = due();
    if (made < newest && (pool.size() > 0 || changes.length > 0)) makeBlock(made + 1);
    // Further ones hold what was not taken into the first.
    while (made < newest && pool.size() > 0 && isMinable(made + 1)) makeBlock(made + 1);
    made = Math.max(made, newest);
    return made;
  }

  const isMinable = (block: number): boolean => {
    const view = state.view(block - 1);
    return pool.next((sender) => view.get(`nonce ${sender}`) ?? 0, feeAt(block)) !== null;
  };

  function makeBlock(block: number): void {
    const view = state.view(block - 1);
    const nonceOf = (sender: Hex): number => view.get(`nonce ${sender}`) ?? 0;
    const now = changes.splice(0);
    for (const { apply } of now.filter(({ first }) => first)) apply(view);
    const inside: Mined[] = [];
    let gasLeft = BLOCK_GAS;
    for (let next = pool.next(nonceOf, feeAt(block)); next; next = pool.next(nonceOf, feeAt(block))) {
      if (next.gas > gasLeft) break;
      pool.remove(next);
      if (balanceOf(view, next.from) < BigInt(next.gas) * feeAt(block)) continue;
      const one = mine(view, next, block, inside.length);
      gasLeft -= one.gasUsed;
      inside.push(one);
    }
    for (const { apply } of now.filter(({ first }) => !first)) apply(view);
    pool.forgetPast(nonceOf);
    view.commit(block);
    made = block;
    if (inside.length > 0) blocks.set(block, inside);
  }

  function mine(view: View, transaction: Transaction, block: number, index: number): Mined {
    const { from, to, data, gas, tip, maxFee, hash, nonce } = transaction;
    const base = feeAt(block);
    let gasPrice = base + tip;
    // Math.min takes no bigints.
    if (gasPrice > maxFee) gasPrice = maxFee;
    const env = envOf({ view, block, timestamp: timeOf(block), gasPrice, origin: from, relayer });
    view.set(`nonce ${from}`, nonce + 1);
    const intrinsic = intrinsicGas(data);
    const frame = { from, to, data, gas: gas - intrinsic, used: 0 };
    const result: CallResult =
      intrinsic > gas
        ? { ok: false, data: '0x', gasUsed: gas - intrinsic, why: 'intrinsic gas' }
        : executor.call(env, frame);
    const gasUsed = Math.min(gas, intrinsic + result.gasUsed);
    moveWei(view, from, BENEFICIARY, BigInt(gasUsed) * gasPrice);
    const logged = result.ok ? env.logs : [];
    const one: Mined = { transaction, block, index, ok: result.ok, gasUsed, gasPrice, logs: logged, why: result.why };
    mined.set(hash, one);
    allMined.push(one);
    for (const log of one.logs) remember(log, block, hash);
    return one;
  }

  function remember(log: Log, block: number, hash: Hex): void {
    logs.push({ ...log, block, hash });
    const [kind, from, to] = log.topics;
    if (log.address !== USDC || kind !== TRANSFER || !from || !to) return;
    movements.push({ from: `0x${from.slice(26)}`, to: `0x${to.slice(26)}`, units: BigInt(log.data), hash, block });
  }

  /** Looks again when the next block is due, so that what waits is mined though nobody asks. */
  function wake(): void {
    if (alarm) return;
    alarm = true;
    const next = genesisMs + stalledMs + (made + 1) * BLOCK_MS - scheduler.nowMs();
    scheduler.after(Math.max(1, next), WORLD, 'block', () => {
      alarm = false;
      head();
      if (pool.size() > 0 || changes.length > 0) wake();
    });
  }

  return {
    chainId,
    genesisMs,
    token,
    channelTerms,
    head,
    timeOf,
    feeAt,
    hashOf,
    viewAt: (block: number): View => state.view(block),
    /** Null when a node takes it, else what it says. */
    submit(raw: Hex): { hash: Hex | null; error: string | null } {
      const transaction = readTransaction(raw, chainId);
      if (!transaction) return { hash: null, error: 'failed to decode signed transaction' };
      const view = state.view(head());
      if (mined.has(transaction.hash)) return { hash: transaction.hash, error: 'already known' };
      const nonce = view.get(`nonce ${transaction.from}`) ?? 0;
      const error = pool.add(transaction, nonce, balanceOf(view, transaction.from));
      if (error === null) for (const listener of submitListeners) listener(transaction);
      wake();
      return { hash: transaction.hash, error };
    },
    /** Calls back with every transaction that begins to wait. */
    onSubmit: (listener: (transaction: Transaction) => void): void => void submitListeners.push(listener),
    /** Runs a call as if it came after this block. */
    call(block: number, { from, to, data, gas, gasPrice }: Call): CallResult {
      const env = envOf({ view: state.view(block), block, timestamp: timeOf(block), gasPrice, origin: from, relayer });
      return to === null ? executor.readPayers(env, data) : executor.call(env, { from, to, data, gas, used: 0 });
    },
    mined: (hash: Hex): Mined | null => mined.get(hash) ?? null,
    /** In their order. */
    allMined: (): readonly Mined[] => allMined,
    blockAt: (block: number): readonly Mined[] => blocks.get(block) ?? [],
    logs: (): readonly (Log & { readonly block: number; readonly hash: Hex })[] => logs,
    movements: (): readonly Movement[] => movements,
    pending: (): Transaction[] => pool.all(),
    isPending: (hash: Hex): boolean => pool.has(hash),
    drop: (transaction: Transaction) => pool.remove(transaction),
    /** Changes the state with the next block: balances, code, the token's switches. */
    change(apply: (view: View) => void, first = true): void {
      head();
      changes.push({ apply, first });
      wake();
    },
    /** Before anybody looks: the state that the chain begins with. */
    begin(apply: (view: View) => void): void {
      const view = state.view(0);
      apply(view);
      view.commit(0);
    },
    setFee: (fee: bigint): void => void fees.push({ fromBlock: head() + 1, fee }),
    /** No blocks for so long, from now on. */
    stall(ms: number): void {
      head();
      const until = scheduler.nowMs() + ms;
      stalledMs += Math.max(0, until - Math.max(stalledUntilMs, scheduler.nowMs()));
      stalledUntilMs = Math.max(stalledUntilMs, until);
      stalls.push({ after: made, lostMs: stalledMs });
    },
  };
}

export type Chain = ReturnType<typeof createChain>;
