import { setTimeout as delay } from 'node:timers/promises';

/** How long a demonstration waits for the collector, in milliseconds. The collector goes on reading afterwards. */
const WAIT_MS = 10_000;
const POLL_MS = 250;

/** One line for a person: how much of the chain the service can answer from. `collected` is null before the collector's first block. */
export function progressLine(collected: number | null, head: number): string {
  if (collected === null) return `  none of the chain’s ${head} blocks is collected yet`;
  const behind = Math.max(0, head - collected);
  return behind === 0
    ? `  all ${head} blocks of the chain are collected`
    : `  ${collected} of the chain’s ${head} blocks are collected`;
}

/** Prints the collector's progress until it has reached the head, or WAIT_MS is over. `headOf` reads the chain's head. */
export async function showCollecting(
  origin: string,
  headOf: () => Promise<number>,
  say: (line: string) => void,
  stopping: AbortSignal,
): Promise<void> {
  let shown = '';
  for (const until = Date.now() + WAIT_MS; Date.now() < until; ) {
    const head = await headOf();
    const answer = await fetch(`${origin}/readyz`, { signal: stopping });
    const { checks } = (await answer.json()) as { checks?: { collector?: { collected?: number | null } } };
    const collected = checks?.collector?.collected ?? null;
    const line = progressLine(collected, head);
    if (line !== shown) say(line);
    if (collected !== null && collected >= head) return;
    shown = line;
    await delay(POLL_MS, undefined, { signal: stopping });
  }
  say('  it is still reading; answers about the past grow while it does');
}
