import { type ChainClient, ranked } from '../../chain/rpc/client.ts';
import type { RpcCall } from '../../chain/rpc/wire.ts';
import type { Clock } from '../../lib/clock.ts';
import { hexToBytes } from '../../lib/hex.ts';
import type { Log } from '../../lib/log.ts';
import { isRevert } from './payer-reads.ts';
import { zeroTransferCalldata } from './token.ts';

// Watches whether the token is paused or has blocklisted the seller (FiatToken can do both), by a simulated transfer of
// zero to the seller. Then every settlement reverts, and each sale would cost one transaction. So sales stop.

interface TokenWatchOptions {
  chain: ChainClient;
  usdc: `0x${string}`;
  payTo: `0x${string}`;
  /** The sender of the test transfer: the settlements' sender where it is known. */
  sender(): `0x${string}`;
  clock: Clock;
  log: Pick<Log, 'info' | 'error'>;
}

/** Milliseconds between two tests while the token works. So a pause is noticed before it costs a transaction. */
const CALM_MS = 60_000;

/** Providers that must say that the token refuses, where two or more are configured. */
const ENOUGH = 2;

export interface TokenWatch {
  /** Concurrent callers share a test. False once the token refuses. Never rejects: without an answer the last stays. */
  check(): Promise<boolean>;
  /** Tests once per CALM_MS, and at each call while the token refuses. */
  refresh(): Promise<void>;
  refusal(): string | null;
}

export function createTokenWatch({ chain, usdc, payTo, sender, clock, log }: TokenWatchOptions): TokenWatch {
  const settling = ranked(chain, 'settle');
  let isShut = false;
  let triedMs = Number.NEGATIVE_INFINITY;
  let trying: Promise<void> | null = null;

  async function tryOut(): Promise<void> {
    const transfer = { from: sender(), to: usdc, data: zeroTransferCalldata(hexToBytes(payTo)) };
    const call = { method: 'eth_call', params: [transfer, 'latest'] };
    try {
      await settling.request(call.method, call.params);
      set(false);
    } catch (error) {
      if (isRevert(error)) await confirm(call);
    }
    triedMs = clock.nowMs();
  }

  /** Asks a provider of each host, because one alone must not stop sales. */
  async function confirm(call: RpcCall): Promise<void> {
    if (chain.agreed.witnesses < ENOUGH) return set(true);
    const heard = (await settling.each([call]).catch(() => [])).flatMap(([outcome]) => outcome ?? []);
    const refusals = heard.filter((outcome) => 'error' in outcome && isRevert(outcome.error)).length;
    if (refusals >= ENOUGH) set(true);
    else if (heard.some((outcome) => 'result' in outcome)) set(false);
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
