import { createHash } from 'node:crypto';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { pricesAt } from '../../../src/payment/relayer/gas.ts';
import { step } from '../../../src/payment/relayer/machine.ts';
import { createState, type Effect, type Event, type State } from '../../../src/payment/relayer/state.ts';
import { createWallet } from '../../../src/payment/relayer/transactions.ts';
import { USDC } from './payments.ts';

// The relayer's machine alone: a test feeds it events and answers each effect itself.

const GWEI = 10n ** 9n;
const wallet = createWallet(bytesToHex(createHash('sha256').update('a key').digest()), 5042);

/** Prices at a base fee of 20 gwei. */
export const prices = pricesAt(20n * GWEI, 30_000_000n);

/** A relayer that has sent nothing yet, with next nonce 3. */
export function freshState(): State {
  const state = createState({ usdc: USDC, gatherMs: 200, pollMs: 700, wallet, blockSharePercent: 60 });
  state.nonces.learn(3);
  return state;
}

/** Feeds an event at this time. A lone payment of a plain account is not simulated. */
export function feedAt(state: State, nowMs: number, event: Event): Effect[] {
  return step(state, event, { nowMs, prices, isCareful: false });
}

/** The effects of one kind. */
export const of = (effects: readonly Effect[], kind: Effect['kind']) =>
  effects.filter((effect) => effect.kind === kind);
