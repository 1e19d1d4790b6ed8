import type { Chain } from '../world/chain/chain.ts';
import { SETTLEMENT } from '../world/chain/channel-terms.ts';
import type { Hex } from '../world/chain/keys.ts';
import { EVENTS } from '../world/chain/settlement.ts';

/** One event of a channel, by the contract's logs. */
export interface ChannelEvent {
  readonly kind: 'deposited' | 'claimed' | 'refunded' | 'withdrawInitiated' | 'withdrawFinalized';
  readonly units: bigint;
  readonly block: number;
  readonly atMs: number;
}

const KINDS = ['deposited', 'claimed', 'refunded', 'withdrawInitiated', 'withdrawFinalized'] as const;

/** What the chain proves of channels: the world's own reading, not the service's. */
export function createChannelHistory(chain: Chain) {
  const events = new Map<Hex, ChannelEvent[]>();
  let read = 0;

  function catchUp(): void {
    chain.head();
    const logs = chain.logs();
    for (; read < logs.length; read++) {
      const { address, topics, data, block } = logs[read] as (typeof logs)[number];
      const kind = address === SETTLEMENT ? KINDS.find((one) => EVENTS[one] === topics[0]) : undefined;
      const id = topics[1];
      if (!kind || !id) continue;
      const event = { kind, units: BigInt(data.slice(0, 66)), block, atMs: chain.timeOf(block) * 1000 };
      events.set(id, [...(events.get(id) ?? []), event]);
    }
  }

  return {
    /** Of one channel, in their order. */
    of(id: Hex): readonly ChannelEvent[] {
      catchUp();
      return events.get(id) ?? [];
    },
    /** Changes with each new event. */
    count(): number {
      catchUp();
      return read;
    },
  };
}

export type ChannelHistory = ReturnType<typeof createChannelHistory>;
