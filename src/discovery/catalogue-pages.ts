import { z } from 'zod';
import { UpstreamFailed } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { Upstream } from '../upstream/client/client.ts';

/** The most items that Circle's catalogue returns per page. When a catalogue returns fewer, the next offset follows from what it returned. */
const PAGE = 200;
/** 25 pages of 200. Circle listed 1,162 entries in September 2026, over all chains. */
const MAX_PAGES = 25;
const PAGE_BYTES = 4 * 1024 * 1024;
/** At most one request per second, so that no catalogue is overloaded. */
const PAUSE_MS = 1000;

/** Circle and most others say `items`; Coinbase's search says `resources`. */
const pageSchema = z
  .looseObject({
    items: z.array(z.unknown()).optional(),
    resources: z.array(z.unknown()).optional(),
    pagination: z
      .looseObject({ total: z.number().optional().catch(undefined) })
      .optional()
      .catch(undefined),
  })
  .refine(({ items, resources }) => items !== undefined || resources !== undefined, 'neither items nor resources');

interface PagesOptions {
  readonly upstream: Upstream;
  /** The catalogue's URL. Its own query is kept; paging and the network are added. */
  readonly url: string;
  /** CAIP-2. A catalogue may ignore it, so the caller filters the items again. */
  readonly network: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Yields a catalogue's items page by page, as untrusted JSON, up to the end or to 25 pages. Returns true when the catalogue goes on after that.
 * Rejects when any page cannot be read, because a part of a catalogue must not pass for the whole.
 */
export async function* readPages(options: PagesOptions): AsyncGenerator<readonly unknown[], boolean> {
  const { upstream, clock, signal } = options;
  const firstItems = new Set<string>();
  let offset = 0;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    if (pages > 0) await clock.sleep(PAUSE_MS, signal);
    const page = await upstream.json({ url: pageUrl(options, offset), maxBytes: PAGE_BYTES, signal }, pageSchema);
    if (page === null) throw new UpstreamFailed(upstream.name, 'answered HTTP 404');
    const items = page.items ?? page.resources ?? [];
    const first = JSON.stringify(items[0]);
    // The end, or a catalogue that ignores paging and repeats its first page.
    if (items.length === 0 || firstItems.has(first)) return false;
    firstItems.add(first);
    yield items;
    offset += items.length;
    const total = page.pagination?.total;
    if (total !== undefined && offset >= total) return false;
  }
  return true;
}

function pageUrl({ url, network }: PagesOptions, offset: number): string {
  const page = new URL(url);
  page.searchParams.set('network', network);
  page.searchParams.set('limit', String(PAGE));
  page.searchParams.set('offset', String(offset));
  return page.href;
}
