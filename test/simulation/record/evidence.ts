import type { Chain } from '../world/chain/chain.ts';
import { COLLECTOR, SETTLEMENT } from '../world/chain/channel-terms.ts';
import type { Hex } from '../world/chain/keys.ts';
import { CANCELED, TRANSFER, USDC, USED } from '../world/chain/token.ts';

/**
 * How an authorization of the token ended, by the logs of the transaction that did it. `stray`: the money is with the collector of deposits, and in no
 * channel.
 */
export interface Ended {
  readonly kind: 'paid' | 'stray' | 'canceled';
  readonly to: Hex;
  readonly units: bigint;
  readonly hash: Hex;
  readonly block: number;
  /** Who sent the transaction. */
  readonly sender: Hex;
}

/** What the chain proves of authorizations, read from its logs: the world's own reading, not the service's. */
export function createEvidence(chain: Chain) {
  const ends = new Map<string, Ended>();
  let read = 0;

  /** Reads what is new. Within one transaction a use is followed by its own transfer, and a deposit by that of the collector. */
  function catchUp(): void {
    chain.head();
    const logs = chain.logs();
    let open: { key: string; hash: Hex } | null = null;
    for (; read < logs.length; read++) {
      const log = logs[read];
      if (!log || log.address !== USDC) continue;
      const [kind, from = '0x', second = '0x'] = log.topics;
      const sender = chain.mined(log.hash)?.transaction.from ?? '0x';
      const common = { hash: log.hash, block: log.block, sender };
      if (kind === USED) open = { key: `0x${from.slice(26)}${second}`, hash: log.hash };
      if (kind === CANCELED)
        ends.set(`0x${from.slice(26)}${second}`, { kind: 'canceled', to: '0x', units: 0n, ...common });
      if (kind !== TRANSFER || open?.hash !== log.hash) continue;
      const to: Hex = `0x${second.slice(26)}`;
      const first = ends.get(open.key);
      const isPassedOn = first?.kind === 'stray' && to === SETTLEMENT && BigInt(log.data) === first.units;
      if (isPassedOn) ends.set(open.key, { ...first, kind: 'paid' });
      else if (!first)
        ends.set(open.key, { kind: to === COLLECTOR ? 'stray' : 'paid', to, units: BigInt(log.data), ...common });
      if (to !== COLLECTOR) open = null;
    }
  }

  return {
    /** Null while it is unused. */
    of(from: Hex, nonce: Hex): Ended | null {
      catchUp();
      return ends.get(`${from}${nonce}`) ?? null;
    },
    all(): IterableIterator<[string, Ended]> {
      catchUp();
      return ends.entries();
    },
  };
}
