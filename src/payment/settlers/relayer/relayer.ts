import type { ChainClient } from '../../../chain/rpc/client.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { ChainCheck } from '../../evm/chain-check.ts';
import type { Evidence } from '../../evm/evidence.ts';
import { bannedPayers, isBanned } from '../../evm/payer-bans.ts';
import type { TokenWatch } from '../../evm/token-watch.ts';
import type { Settler } from '../../settler.ts';
import { createDriver } from './driver.ts';
import { createEffects } from './effects.ts';
import type { Moment } from './events.ts';
import { createFees } from './fees.ts';
import type { MinedCost } from './mined-cost.ts';
import { createState } from './state.ts';
import type { Wallet } from './wallet.ts';

const BANNED = 'its payments cost gas and move nothing';

/** What the relayer is made of. */
export interface RelayerOptions {
  chain: ChainClient;
  check: Pick<ChainCheck, 'read' | 'balanceAt'>;
  usdc: `0x${string}`;
  wallet: Wallet;
  evidence: Pick<Evidence, 'lookup'>;
  /** Tells whether the token would let any payment through. */
  token: Pick<TokenWatch, 'check'>;
  /** Whether failures have cost so much today that each payment is looked at before it is sent. */
  isCareful(): boolean;
  clock: Clock;
  /** Receipts are asked for at least this often while something is in flight; a told head makes it sooner. */
  pollMs: number;
  /** While a transaction is in flight, those that come wait at the most this long for others to share the next with. */
  gatherMs: number;
  /** How much of a block one transaction may take. */
  blockSharePercent: number;
  /** A job that waits longer than this stops the sale of more. */
  stallMs: number;
  /** Calls back when a new block is told of; returns how to stop it. */
  onHead(tell: () => void): () => void;
  /** Made durable before anything is broadcast; returns the ids that still await settlement, the others must not be sent. */
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<ReadonlySet<string>>;
  /** Told of each of our transactions that was mined; it must not throw. */
  onMined(cost: MinedCost): void;
  log: { warn(detail: object, message: string): void };
}

/** Our own settler, and what it still has to pay. */
export interface Relayer extends Settler {
  /** What the open settlements are expected to cost, in wei. */
  expectedWei(): bigint;
}

/**
 * Our own settler: one key, one queue, one sequence of nonces. What waits goes out together, in as few transactions as the gas allows,
 * as soon as the sender is free; outcomes are read from the logs of what was mined.
 * A job ends when the chain has said so. Presenting an authorization twice wastes gas, never money, because its nonce moves money once.
 */
export function createRelayer(options: RelayerOptions): Relayer {
  const { chain, wallet, clock, stallMs } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const fees = createFees(chain, clock, signal);
  const state = createState(options);
  const effects = createEffects({ ...options, fees, relayer: wallet.address, signal });
  const moment = (): Moment => ({ nowMs: clock.nowMs(), prices: fees.prices(), isCareful: options.isCareful() });
  const driver = createDriver({ ...options, state, effects, moment });

  function isLate(): boolean {
    const [oldest] = state.open;
    return oldest !== undefined && clock.nowMs() - oldest.sinceMs > stallMs;
  }

  return {
    settle: driver.submit,
    unavailable: () => {
      if (state.stopping) return 'the service is stopping';
      return isLate() ? 'earlier settlements are late' : null;
    },
    refuses: (payer) => (isBanned(state.bans, bytesToHex(payer), clock.nowMs()) ? BANNED : null),
    refused: () => bannedPayers(state.bans, clock.nowMs()).map((payer) => [payer, BANNED]),
    expectedWei: () => BigInt(state.open.size) * state.gas.expected() * fees.prices().gasPrice,
    stop: () => driver.stop(() => stopping.abort()),
  };
}
