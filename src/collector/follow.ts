import { type CollectorContext, createSizer, noteRefused } from './context.ts';
import { alarm, type BlocksRead, findStale, isStoredAs, prepareSpan, readBlocks } from './spans.ts';
import type { SeenHead } from './store/facts.ts';

/** Then a lower head is accepted: the chain itself may have gone back. */
const LOWER_HEAD_MS = 10_000;
/** Far above any pause seen between blocks: another provider may be ahead. */
const STUCK_MS = 5000;
/** With more blocks to read, the next poll follows at once. */
const BEHIND_BLOCKS = 8;
/** How far beyond the known head a websocket's hint counts. */
const HINT_BLOCKS = 8;

/** Resolves to the milliseconds until the next. */
type Poll = () => Promise<number>;

/**
 * The head loop. Each poll asks, in one request, for the head and the blocks up to the head of the poll before. Then:
 * 1. a head below the known one is refused, so that another provider is asked; after 10 s it is accepted;
 * 2. where the head has not moved for 5 s, a higher one is asked for: a provider may be ahead;
 * 3. at first, after a wide gap or a false head, reading continues at the head, and the background loop fills the gap;
 * 4. blocks that follow the stored ones are stored, a span in one transaction;
 * 5. blocks do not follow, or the head differs from the stored block of its number: the chain is compared, backwards:
 *    a. none differs: the answer was of another chain. It is refused, and the blocks are asked for again;
 *    b. some differ, against deterministic finality: an alarm. The true blocks replace them, in one transaction;
 * 6. still far behind, the next poll follows at once; else after the poll interval.
 */
export function createFollow(context: CollectorContext): Poll {
  const { clock, limits, state } = context;
  const sizer = createSizer(limits.blocksPerRequest, 8);
  let lastGoodMs = clock.nowMs();
  let lastHigherAskMs = clock.nowMs();

  /** Cases 1 and 2. */
  async function ask(startedMs: number): Promise<BlocksRead> {
    const known = state.head?.number ?? 0;
    const { next } = state;
    const shown = Math.max(known, Math.min(state.hint ?? 0, known + HINT_BLOCKS));
    const to = next === null ? -1 : Math.min(shown, next + sizer.size - 1);
    const refusesLower = startedMs - lastGoodMs < LOWER_HEAD_MS;
    // When a lower head is accepted, the known one may be false, and its blocks not exist.
    const span = refusesLower && next !== null && to >= next ? { from: next, to } : null;
    const stuck = span === null && startedMs - (state.headAdvancedMs ?? startedMs) >= STUCK_MS;
    if (stuck && startedMs - lastHigherAskMs >= STUCK_MS) {
      lastHigherAskMs = startedMs;
      const ahead = await readBlocks(context, { span, minHead: known + 1 }).catch(() => null);
      if (ahead !== null) return ahead;
      context.signal.throwIfAborted();
    }
    return readBlocks(context, { span, minHead: refusesLower ? known : 0 });
  }

  return async () => {
    const startedMs = clock.nowMs();
    let read: BlocksRead;
    try {
      read = await ask(startedMs);
    } catch (error) {
      sizer.shrink();
      state.hint = null;
      throw error;
    }
    sizer.grow();
    lastGoodMs = clock.nowMs();
    const { head } = read;
    if (head === null) throw new Error('the head was asked for');
    const before = state.head;
    noteHead(context, head);
    const next = startAt(context, head);
    const tip = next - 1;
    const first = read.blocks[0]?.block.header;
    if (before !== null && head.number < before.number) noteRefused(context, 'staleHead');
    const fits =
      isStoredAs(context, head.number, head.hash) &&
      (first === undefined || first.number !== next || isStoredAs(context, tip, first.parentHash));
    if (!fits) await realign(context, Math.min(tip, head.number), head);
    else if (first?.number === next) await extend(context, read);
    const behind = head.number - (state.next ?? 0) + 1 > BEHIND_BLOCKS;
    return behind ? 0 : Math.max(limits.pollIntervalMs - (clock.nowMs() - startedMs), 0);
  };
}

function noteHead({ state, writes, clock }: CollectorContext, head: SeenHead): void {
  const nowMs = clock.nowMs();
  state.headCheckedMs = nowMs;
  const known = state.head;
  const advanced = known === null || head.number > known.number;
  const seen = { number: head.number, hash: head.hash, at: head.at };
  state.head = seen;
  if (!advanced) return;
  state.headAdvancedMs = nowMs;
  writes.storeHead({ ...seen, advancedMs: nowMs });
}

/** Case 3: the block at which reading continues. */
function startAt({ state, limits, log, lookups }: CollectorContext, head: SeenHead): number {
  const { next } = state;
  const beyond = next !== null && next > head.number + 1 && lookups.hashOf(next - 1) === null;
  if (next !== null && head.number - next < limits.jumpBlocks && !beyond) return next;
  if (next !== null && !beyond)
    log.info({ from: next, to: head.number - 1 }, 'far behind the head; the background loop fills the gap');
  state.next = Math.max(head.number, 1);
  return state.next;
}

/** Case 4. The link is checked after `prepareSpan`: the background loop may have changed the block below. */
async function extend(context: CollectorContext, read: BlocksRead): Promise<void> {
  const span = await prepareSpan(context, read);
  const [first, last] = [span?.blocks[0]?.block.header, span?.blocks.at(-1)?.block.header];
  if (!span || !first || !last || !isStoredAs(context, first.number - 1, first.parentHash)) return;
  span.store();
  context.state.next = last.number + 1;
}

/** Case 5. */
async function realign(context: CollectorContext, tip: number, head: SeenHead): Promise<void> {
  const { limits, state } = context;
  const stale = await findStale(context, tip, -1);
  if (stale === null) return noteRefused(context, 'parent');
  const to = Math.min(head.number, stale.from + limits.blocksPerRequest - 1);
  const read = await readBlocks(context, { span: { from: stale.from, to }, minHead: null });
  const span = await prepareSpan(context, read);
  const first = span?.blocks[0]?.block.header;
  if (!span || !first || !isStoredAs(context, first.number - 1, first.parentHash)) {
    return noteRefused(context, 'parent');
  }
  alarm(context, { from: stale.from, to: (state.next ?? stale.to + 1) - 1 });
  span.store(stale.from);
  state.next = to + 1;
}
