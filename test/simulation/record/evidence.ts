import type { Chain } from '../world/chain/chain.ts';
import type { Hex } from '../world/chain/keys.ts';
import { CANCELED, TRANSFER, USDC, USED } from '../world/chain/token.ts';

/** How an authorization of the token ended, by the logs of the transaction that did it. */
export interface Ended {
  readonly kind: 'paid' | 'canceled';
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

  /** Reads what is new. Within one transaction a use is followed by its own transfer. */
  function catchUp(): void {
    chain.head();
    const logs = chain.logs();
    let open: { key: string; hash: Hex } | null = null;
    for (; read < logs.length; read++) {
      const log = logs[read];
      if (!log || log.address !== USDC) continue;
      const [kind, first = '0x', second = '0x'] = log.topics;
      const sender = chain.mined(log.hash)?.transaction.from ?? '0x';
      const common = { hash: log.hash, block: log.block, sender };
      if (kind === USED) open = { key: `0x${first.slice(26)}${second}`, hash: log.hash };
      if (kind === CANCELED)
        ends.set(`0x${first.slice(26)}${second}`, { kind: 'canceled', to: '0x', units: 0n, ...common });
      if (kind !== TRANSFER || open?.hash !== log.hash) continue;
      ends.set(open.key, { kind: 'paid', to: `0x${second.slice(26)}`, units: BigInt(log.data), ...common });
      open = null;
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
