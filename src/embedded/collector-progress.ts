import { setTimeout as delay } from 'node:timers/promises';

/** The progress of the collector's first fill, as `/readyz` reports it. */
interface Backfill {
  readonly share: number;
  readonly blocksPerSecond: number;
  readonly secondsLeft: number | null;
}

const WIDTH = 24;
/** How long a demonstration waits for the collector, in milliseconds. The collector goes on filling afterwards. */
const WAIT_MS = 4_000;

/** One line for a person: a bar with the share of the window, the pace and the time left. */
export function progressLine({ share, blocksPerSecond, secondsLeft }: Backfill): string {
  const done = Math.round(share * WIDTH);
  const bar = '#'.repeat(done).padEnd(WIDTH, '.');
  const left = secondsLeft === null ? 'time left unknown' : `${Math.ceil(secondsLeft)} s left`;
  return `  [${bar}] ${Math.floor(share * 100)} % of the window, ${Math.round(blocksPerSecond)} blocks/s, ${left}`;
}

/** Prints the collector's progress until the window is full or WAIT_MS is over. */
export async function showCollecting(
  origin: string,
  say: (line: string) => void,
  stopping: AbortSignal,
): Promise<void> {
  let shown = '';
  for (const until = Date.now() + WAIT_MS; Date.now() < until; ) {
    const answer = await fetch(`${origin}/readyz`, { signal: stopping });
    const { checks } = (await answer.json()) as { checks?: { collector?: { backfill?: Backfill } } };
    const backfill = checks?.collector?.backfill;
    if (!backfill) return;
    const line = progressLine(backfill);
    if (line !== shown) say(line);
    shown = line;
    if (backfill.share >= 1) return;
    await delay(500, undefined, { signal: stopping });
  }
}
