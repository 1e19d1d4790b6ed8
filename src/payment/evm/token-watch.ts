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
  /** From whom the token is tried: the settlements' sender where it is known. */
  sender(): `0x${string}`;
  clock: Clock;
  log: { error(detail: object, message: string): void; info(detail: object, message: string): void };
}

/** While all is well the token is tried this often, so that a pause is noticed before it costs a transaction. */
const CALM_MS = 60_000;

/** Whether the token lets any payment to the seller through. */
export interface TokenWatch {
  /** Tries it now, with others who ask meanwhile; true while it was not found shut. Never rejects: a chain that does not answer says nothing. */
  check(): Promise<boolean>;
  /** For the timer: tries it now and then, and each time while it is shut. */
  refresh(): Promise<void>;
  /** Why nothing can be settled, or null. */
  refusal(): string | null;
}

/**
 * Watches whether the token is paused or has blocklisted the seller (FiatToken can do both): then every settlement reverts for every payer, and
 * selling on would cost one transaction a buyer. A transfer of nothing to the seller tells, without sending it.
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
