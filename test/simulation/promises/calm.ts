import type { Move } from '../moves/move.ts';
import type { World } from '../world/world.ts';

/** Of what goes wrong, how long it is felt after its own time: pauses of providers, the lease of a leader, starts. */
const FELT_MS = 25_000;

const TROUBLES: readonly Move['do'][] = [
  ...([
    'provider',
    'stall',
    'drop pending',
    'fee',
    'disk',
    'kill',
    'stop',
    'sleep',
    'leap',
    'ledger',
    'token',
  ] as const),
  'relayer gas',
];

/** When nothing was wrong with the world: what the service can do, it has done then. */
export function createCalm({ scheduler, startMs }: World) {
  const troubles: { readonly fromMs: number; readonly toMs: number }[] = [{ fromMs: 0, toMs: startMs + FELT_MS }];

  return {
    /** Called before each move. */
    note(move: Move): void {
      if (!TROUBLES.includes(move.do)) return;
      const { ms = 0, downMs = 0 } = move as { ms?: number; downMs?: number };
      // What a process does before it is killed takes its time.
      const fromMs = scheduler.nowMs();
      troubles.push({ fromMs, toMs: fromMs + ms + downMs + FELT_MS });
    },
    /** The longest time between two moments in which nothing was wrong, in milliseconds. */
    longest(fromMs: number, toMs: number): number {
      let [longest, at] = [0, fromMs];
      for (const trouble of troubles) {
        if (trouble.toMs <= at || trouble.fromMs >= toMs) continue;
        longest = Math.max(longest, trouble.fromMs - at);
        at = trouble.toMs;
      }
      return Math.max(longest, toMs - at);
    },
  };
}

export type Calm = ReturnType<typeof createCalm>;
