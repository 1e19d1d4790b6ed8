import type { ChainClient } from '../../chain/rpc/client.ts';
import { ranked } from '../../chain/rpc/ranked.ts';
import type { Clock } from '../../lib/clock.ts';
import { hexToBytes } from '../../lib/hex.ts';
import { isRevert } from './is-revert.ts';
import { zeroTransferCalldata } from './token.ts';

interface TokenWatchOptions {
  chain: ChainClient;
  usdc: `0x${string}`;
  payTo: `0x${string}`;
  /** The sender of the test transfer: the settlements' sender where it is known. */
  sender(): `0x${string}`;
  clock: Clock;
  log: { error(detail: object, message: string): void; info(detail: object, message: string): void };
}

/** Milliseconds between two tests while the token works. A pause of the token is then noticed before it costs a transaction. */
const CALM_MS = 60_000;

/** Watches whether the token lets any payment to the seller through. */
export interface TokenWatch {
  /**
   * Tests the token now. Concurrent callers share one test. False once a test found that the token refuses. Never rejects: when the chain does not
   * answer, the last result stays.
   */
  check(): Promise<boolean>;
  /** For the timer: tests the token once per CALM_MS, and at each call while it refuses. */
  refresh(): Promise<void>;
  /** Why nothing can be settled, or null. */
  refusal(): string | null;
}

/**
 * Watches whether the token is paused or has blocklisted the seller (FiatToken can do both). Then every settlement reverts for every payer, and each
 * further sale would cost one transaction. The test simulates a transfer of zero to the seller.
 */
export function createTokenWatch({ chain, usdc, payTo, sender, clock, log }: TokenWatchOptions): TokenWatch {
  const settling = ranked(chain, 'settle');
  let isShut = false;
  let triedMs = Number.NEGATIVE_INFINITY;
  let trying: Promise<void> | null = null;

  async function tryOut(): Promise<void> {
    const call = { from: sender(), to: usdc, data: zeroTransferCalldata(hexToBytes(payTo)) };
    try {
      await settling.request('eth_call', [call, 'latest']);
      set(false);
    } catch (error) {
      if (isRevert(error)) set(true);
    }
    triedMs = clock.nowMs();
  }

  function set(shut: boolean): void {
    if (shut && !isShut) log.error({ usdc, payTo }, 'ALERT: the token lets nothing through to the seller; sales stop');
    if (!shut && isShut) log.info({ usdc, payTo }, 'the token lets payments through again');
    isShut = shut;
  }

  async function check(): Promise<boolean> {
    trying ??= tryOut().finally(() => {
      trying = null;
    });
    await trying;
    return !isShut;
  }

  return {
    check,
    refresh: async () => {
      if (isShut || clock.nowMs() - triedMs >= CALM_MS) await check();
    },
    refusal: () => (isShut ? 'the USDC token is paused, or refuses the seller' : null),
  };
}
