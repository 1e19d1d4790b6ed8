import { headerCall, readHeader, readNewestHeader } from '../chain/block.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { Clock } from '../lib/clock.ts';
import type { Common } from '../lib/common.ts';
import { createLoop } from '../lib/tasks.ts';

/** Answers take time, and a chain's blocks have whole seconds. */
const MOST_OFF_MS = 5000;
const EVERY_MS = 60_000;
/** Blocks from which the chain's pace is measured. */
const PACE_BLOCKS = 20;
const LATE_BLOCKS = 2;

export interface ClockWatch {
  status(): { readonly ok: boolean; readonly detail?: string };
  start(): void;
  stop(): Promise<void>;
}

/**
 * Watches this machine's clock, which decides which payments are valid and which leases have ended. Once a minute it is
 * compared with the shared database's time and the newest block's. A block from the future shows that the clock is
 * behind. An old one shows that it is ahead, unless the chain stands still: the head is read again, and if it has
 * moved, what is left of the age after two blocks' time is our error. What cannot be asked leaves the last finding.
 * `ledgerNowMs` is null for a ledger in a file.
 */
export function createClockWatch(
  { clock, log }: Common,
  chain: ChainClient,
  ledgerNowMs: (() => Promise<number>) | null,
): ClockWatch {
  /** By what the clock was compared with: positive where it is ahead. */
  const found = new Map<string, number>();
  let detail: string | null = null;

  async function compare(name: string, look: () => Promise<number | null>): Promise<void> {
    const offMs = await look().catch(() => null);
    if (offMs === null) return;
    if (Math.abs(offMs) > MOST_OFF_MS) found.set(name, offMs);
    else found.delete(name);
  }

  async function look(signal: AbortSignal): Promise<number> {
    if (ledgerNowMs) await compare("the ledger's database", () => offFrom(ledgerNowMs, clock));
    await compare("the chain's newest block", () => offFromChain(chain, clock, signal));
    const before = detail;
    detail = found.size === 0 ? null : `${[...found].map(wordsOf).join('; ')}: set it by NTP`;
    if (detail !== null && before === null)
      log.warn({ offMs: Object.fromEntries(found) }, `the clock is off: ${detail}`);
    if (detail === null && before !== null) log.info({}, 'the clock is right again');
    return EVERY_MS;
  }

  const { start, stop } = createLoop(clock, look);

  return { status: () => (detail === null ? { ok: true } : { ok: false, detail }), start, stop };
}

function wordsOf([name, offMs]: [string, number]): string {
  const seconds = Math.round(Math.abs(offMs) / 1000);
  return `this machine's clock is ${seconds} s ${offMs > 0 ? 'ahead of' : 'behind'} ${name}`;
}

/** How far ours is off at the least, in ms: positive where it is ahead. 0 where the question's time explains it. */
async function offFrom(theirNowMs: () => Promise<number>, clock: Clock): Promise<number> {
  const askedMs = clock.nowMs();
  const theirMs = await theirNowMs();
  const answeredMs = clock.nowMs();
  return theirMs > answeredMs ? answeredMs - theirMs : Math.max(0, askedMs - theirMs);
}

/** Counted like `offFrom`. Null where the chain stands still. */
async function offFromChain(chain: ChainClient, clock: Clock, signal: AbortSignal): Promise<number | null> {
  const first = await readHead(chain, clock);
  if (first.offMs <= MOST_OFF_MS) return first.offMs;
  const span = Math.min(PACE_BLOCKS, first.number);
  if (span === 0) return null;
  const [outcome] = await chain.batch([headerCall(first.number - span)], {});
  const paceMs = ((first.at - readHeader(outcome, first.number - span).at) * 1000) / span;
  await clock.sleep(LATE_BLOCKS * paceMs + 1000, signal);
  const second = await readHead(chain, clock);
  if (second.number <= first.number) return null;
  return Math.max(0, Math.min(first.offMs, second.offMs) - LATE_BLOCKS * paceMs);
}

/** `offMs`: how far our clock is off from the block's time; a block's age counts as ahead. */
async function readHead(chain: ChainClient, clock: Clock) {
  const askedMs = clock.nowMs();
  const { number, at } = await readNewestHeader(chain);
  const answeredMs = clock.nowMs();
  // A block's time is cut to whole seconds: it may be up to a second younger.
  const madeMs = { earliest: at * 1000, latest: (at + 1) * 1000 };
  const offMs = madeMs.earliest > answeredMs ? answeredMs - madeMs.earliest : Math.max(0, askedMs - madeMs.latest);
  return { number, at, offMs };
}
