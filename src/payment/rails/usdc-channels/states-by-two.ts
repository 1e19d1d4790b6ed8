import type { ChainClient } from '../../../chain/rpc/client.ts';
import { Unavailable } from '../../../errors.ts';
import type { ChannelState } from '../../../store/ports/channel-state.ts';
import type { ChannelReader, ChannelStates } from './channel-reader.ts';

/**
 * What providers say of one channel. `state` is what two of them say, and more than say anything else; undefined
 * without two. `isUnanimous`: whether all that answered say the same.
 */
interface Verdict {
  readonly state: ChannelState | null | undefined;
  readonly isUnanimous: boolean;
}

/**
 * Compares what each provider says of `count` channels at one block, each channel on its own: a lie about one leaves
 * the others as they are. With one configured provider (`witnesses`) its word alone counts.
 */
export function compareStates(each: readonly ChannelStates[], count: number, witnesses: number): readonly Verdict[] {
  return Array.from({ length: count }, (_, at): Verdict => {
    const groups = [...Map.groupBy(each, (states) => textOf(states[at])).values()];
    const [most, next] = groups.sort((one, other) => other.length - one.length);
    const isDecided = (most?.length ?? 0) >= Math.min(2, witnesses) && most?.length !== next?.length;
    return { state: isDecided ? (most?.[0]?.[at] ?? null) : undefined, isUnanimous: groups.length === 1 };
  });
}

const textOf = (state: ChannelState | null | undefined): string =>
  JSON.stringify(state ?? null, (_, value) => (typeof value === 'bigint' ? `${value}` : value));

/**
 * Reads channels at the agreed head as `read` does. Where no two providers say the same of all, undefined stands for
 * those that they differ about. Rejects as `read` does where they differ about every one.
 */
export async function readByTwo(
  reader: Pick<ChannelReader, 'read' | 'readEach'>,
  { agreed }: Pick<ChainClient, 'agreed'>,
  ids: readonly Uint8Array[],
  signal: AbortSignal,
): Promise<readonly (ChannelState | null | undefined)[]> {
  try {
    return await reader.read(ids, { signal });
  } catch (error) {
    if (!(error instanceof Unavailable) || ids.length < 2) throw error;
    const head = await agreed.head({ rank: 'settle', signal });
    const verdicts = compareStates(await reader.readEach(ids, head, 'settle'), ids.length, agreed.witnesses);
    if (verdicts.every(({ state }) => state === undefined)) throw error;
    return verdicts.map(({ state }) => state);
  }
}
