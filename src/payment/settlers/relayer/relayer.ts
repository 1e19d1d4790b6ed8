import type { ChainClient } from '../../../chain/rpc/client.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { Relaying, Settler } from '../../settler.ts';
import type { ChainCheck } from '../../usdc/checks.ts';
import type { Evidence } from '../../usdc/evidence.ts';
import { bannedPayers, isBanned } from '../../usdc/payer-reads.ts';
import type { TokenWatch } from '../../usdc/token-watch.ts';
import { createDriver } from './driver.ts';
import { createEffects } from './effects.ts';
import type { Moment } from './events.ts';
import { createFees } from './fees.ts';
import type { MinedCost, RailCost } from './mined-cost.ts';
import { createState } from './state.ts';
import type { Wallet } from './wallet.ts';

const BANNED = 'its payments cost gas and move nothing';

/** The parts and settings of the relayer. */
export interface RelayerOptions {
  chain: ChainClient;
  check: Pick<ChainCheck, 'read' | 'balanceAt'>;
  usdc: `0x${string}`;
  wallet: Wallet;
  evidence: Pick<Evidence, 'lookup'>;
  /** Checks whether the token would let any payment through. */
  token: Pick<TokenWatch, 'check'>;
  /** Whether failures have used up today's budget, so that each payment is simulated before it is sent. */
  isCareful(): boolean;
  clock: Clock;
  /** Milliseconds between two requests for receipts while a transaction is in flight. A new head makes the next request come at once. */
  pollMs: number;
  /** The batch window, in milliseconds: while a transaction is in flight, a new job waits at most this long for others that share its transaction. */
  batchWindowMs: number;
  /** The part of a block that one transaction may take, in percent. */
  blockSharePercent: number;
  /** Milliseconds after which an open job stops further sales. */
  stallMs: number;
  /** Calls `listener` at each new block. Returns a function that stops it. */
  onHead(listener: () => void): () => void;
  /** Writes the transactions to disk before they are broadcast. Returns the ids that still await settlement. The others must not be sent. */
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<ReadonlySet<string>>;
  /** Called for each of our transactions that was mined, with the same cost by rail. It must not throw. */
  onMined(cost: MinedCost, rails: readonly RailCost[]): void;
  log: { warn(detail: object, message: string): void };
}

/** Our own settler, its entrance for operations, and its expected cost. */
export interface Relayer extends Settler, Pick<Relaying, 'operate'> {
  /** The expected cost of the open settlements and operations, in wei. */
  expectedWei(): bigint;
}

/**
 * Our own settler: one key, one queue, one sequence of nonces. When the sender is free, it sends all waiting jobs in as few transactions as the gas
 * allows. It reads each outcome from the logs of mined transactions. A job ends when the chain shows its end. Sending an authorization twice wastes
 * gas but no money, because its nonce moves money once.
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

  function expectedGas(): bigint {
    const { open, openCalls, openOperations, gas } = state;
    let expected = BigInt(open.size - openCalls) * gas.expected() + BigInt(openCalls) * gas.expectedCall();
    for (const { operation } of openOperations) expected += operation.gas;
    return expected;
  }

  return {
    settle: driver.submit,
    operate: driver.operate,
    unavailable: () => {
      if (state.stopping) return 'the service is stopping';
      return isLate() ? 'earlier settlements are late' : null;
    },
    refuses: (payer) => (isBanned(state.bans, bytesToHex(payer), clock.nowMs()) ? BANNED : null),
    refused: () => bannedPayers(state.bans, clock.nowMs()).map((payer) => [payer, BANNED]),
    expectedWei: () => expectedGas() * fees.prices().gasPrice,
    stop: () => driver.stop(() => stopping.abort()),
  };
}
