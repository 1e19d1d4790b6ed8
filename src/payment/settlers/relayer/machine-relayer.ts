import { bytesToHex } from '../../../lib/hex.ts';
import { createDriver } from './driver.ts';
import { createEffects } from './effects.ts';
import type { Moment } from './events.ts';
import { createFees } from './fees.ts';
import { isBanned } from './payer-bans.ts';
import type { Relayer, RelayerOptions } from './relayer.ts';
import { createState } from './state.ts';

/**
 * Our own settler: one key, one queue, one sequence of nonces. What waits goes out together, in as few transactions as the gas allows,
 * as soon as the sender is free; outcomes are read from the logs of what was mined.
 * A job ends when the chain has said so. Presenting an authorization twice wastes gas, never money, because its nonce moves money once.
 */
export function createMachineRelayer(options: RelayerOptions): Relayer {
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
    refuses: (payer) =>
      isBanned(state.bans, bytesToHex(payer), clock.nowMs()) ? 'its payments cost gas and move nothing' : null,
    expectedWei: () => BigInt(state.open.size) * state.gas.expected() * fees.prices().gasPrice,
    stop: () => driver.stop(() => stopping.abort()),
  };
}
