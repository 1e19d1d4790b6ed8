import { z } from 'zod';
import { UpstreamFailed } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/common.ts';
import { isObject, own, ownKeys, plainText } from '../lib/untrusted.ts';
import type { CatalogueStore } from '../store/ports/stores.ts';
import type { Upstream } from '../upstream/client/client.ts';
import { type Payable, readAccepts } from './challenge.ts';
import { methodOf, readBody, readParams } from './description.ts';
import { type Listing, listingSchema, readListedUrl } from './entry.ts';

// A copy of the third-party catalogue's entries that are payable on our chain, stored for restarts and other processes.
// A read that fails, or that suddenly lists much less, changes nothing.

export interface Catalogue {
  version(): number;
  listings(): readonly Listing[];
  /** Unix milliseconds of the last complete read; null before the first. */
  readAtMs(): number | null;
  /** Takes a newer stored copy. Never rejects. */
  load(): Promise<void>;
  /** Whether the copy was renewed. A failed read is logged. Never rejects. */
  read(signal: AbortSignal): Promise<boolean>;
}

interface CatalogueOptions {
  readonly upstream: Upstream;
  readonly url: string;
  readonly payable: Payable;
  readonly store: CatalogueStore;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
}

interface Copy {
  readonly readAtMs: number;
  readonly listings: readonly Listing[];
}

/** All chains together had about 1,200 entries in September 2026. */
const MAX_ENTRIES = 5000;
/** The most JSON that goes into memory, the index and the ledger's file. */
const MAX_BYTES = 8 * 1024 * 1024;
/** A catalogue that loses more than nine tenths of its entries at once has probably failed, but not for a whole day. */
const LEAST_SHARE = 0.1;
const BELIEVED_AFTER_MS = 24 * 3_600_000;

const stored = z.array(listingSchema);

export function createCatalogue(options: CatalogueOptions): Catalogue {
  const { payable, store, clock, log } = options;
  let copy: Copy | null = null;
  let version = 0;

  function take(readAtMs: number, listings: readonly Listing[]): void {
    copy = { readAtMs, listings };
    version += 1;
  }

  async function load(): Promise<void> {
    try {
      const readAt = await store.readAt();
      if (readAt === null || readAt <= (copy?.readAtMs ?? 0)) return;
      const kept = await store.load();
      if (kept === null) return;
      take(kept.readAt, parseStored(kept.entries, payable));
    } catch (error) {
      log.warn({ err: error }, 'the stored copy of the catalogue cannot be read');
    }
  }

  async function save(readAt: number, listings: readonly Listing[]): Promise<void> {
    try {
      await store.save({ readAt, entries: JSON.stringify(listings) });
    } catch (error) {
      log.warn({ err: error }, 'the copy of the catalogue cannot be stored');
    }
  }

  return {
    version: () => version,
    listings: () => copy?.listings ?? [],
    readAtMs: () => copy?.readAtMs ?? null,
    load,
    async read(signal) {
      try {
        const { listings, isCut } = await readAll(options, signal);
        if (isCut)
          log.warn({ entries: listings.length }, 'the catalogue is larger than the limit; the rest is not read');
        if (isDoubtful(copy, listings.length, clock.nowMs())) {
          const had = copy?.listings.length;
          log.warn({ entries: listings.length, had }, 'the catalogue has suddenly shrunk; the last copy is kept');
          return false;
        }
        take(clock.nowMs(), listings);
        await save(clock.nowMs(), listings);
        return true;
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error }, 'the catalogue cannot be read; the last copy is kept');
        return false;
      }
    },
  };
}

/** A stored copy without the entries of another chain. Throws when it is malformed. */
function parseStored(entries: string, { network }: Payable): Listing[] {
  return stored.parse(JSON.parse(entries)).filter(({ entry }) => entry.network === network);
}

function isDoubtful(copy: Copy | null, entries: number, nowMs: number): boolean {
  if (copy === null || nowMs - copy.readAtMs > BELIEVED_AFTER_MS) return false;
  return copy.listings.length > 0 && entries < copy.listings.length * LEAST_SHARE;
}

async function readAll(
  options: CatalogueOptions,
  signal: AbortSignal,
): Promise<{ listings: Listing[]; isCut: boolean }> {
  const { payable } = options;
  const listings: Listing[] = [];
  let bytes = 0;
  const pages = readPages(options, signal);
  for (let page = await pages.next(); ; page = await pages.next()) {
    if (page.done) return { listings, isCut: page.value };
    for (const item of page.value) {
      const listing = readCatalogueItem(item, payable);
      if (listing === null) continue;
      bytes += Buffer.byteLength(JSON.stringify(listing));
      if (listings.length === MAX_ENTRIES || bytes > MAX_BYTES) return { listings, isCut: true };
      listings.push(listing);
    }
  }
}

/** The most items that Circle's catalogue returns per page. */
const PAGE = 200;
const MAX_PAGES = 25;
const PAGE_BYTES = 4 * 1024 * 1024;
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

/** Yields items; true: it goes on after 25 pages. Rejects if any page does: a part must not pass for the whole. */
async function* readPages(
  { upstream, url, payable, clock }: CatalogueOptions,
  signal: AbortSignal,
): AsyncGenerator<readonly unknown[], boolean> {
  const firstItems = new Set<string>();
  let offset = 0;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    if (pages > 0) await clock.sleep(PAUSE_MS, signal);
    const request = { url: pageUrl(url, payable.network, offset), maxBytes: PAGE_BYTES, signal };
    const page = await upstream.json(request, pageSchema);
    if (page === null) throw new UpstreamFailed(upstream.name, 'answered HTTP 404');
    const items = page.items ?? page.resources ?? [];
    const first = JSON.stringify(items[0]);
    // The end, or a catalogue that ignores paging and repeats itself.
    if (items.length === 0 || firstItems.has(first)) return false;
    firstItems.add(first);
    yield items;
    offset += items.length;
    const total = page.pagination?.total;
    if (total !== undefined && offset >= total) return false;
  }
  return true;
}

/** A catalogue may ignore the network, so its items are filtered again. */
function pageUrl(url: string, network: string, offset: number): string {
  const page = new URL(url);
  page.searchParams.set('network', network);
  page.searchParams.set('limit', String(PAGE));
  page.searchParams.set('offset', String(offset));
  return page.href;
}

const MAX_NAME = 100;
const MAX_DESCRIPTION = 500;
const MAX_CATEGORY = 60;
const MAX_KEYWORDS = 400;
const MAX_TAGS = 20;

/** An item of Circle's shape, Coinbase's or x402 version 1's. Null without a usable address, method or way to pay. */
export function readCatalogueItem(item: unknown, payable: Payable): Listing | null {
  const accepts = own(item, 'accepts');
  const terms = readAccepts(accepts, payable);
  const first = Array.isArray(accepts) ? accepts[0] : undefined;
  const address = readListedUrl(own(item, 'resource') ?? own(first, 'resource'));
  if (terms === null || address === null) return null;
  const metadata = own(item, 'metadata');
  const provider = own(metadata, 'provider');
  const bazaar = own(own(own(item, 'extensions'), 'bazaar'), 'info');
  const schema = own(first, 'outputSchema');
  const input = [own(metadata, 'input'), own(bazaar, 'input'), own(schema, 'input')].find(isObject);
  // Without a method the known catalogues mean GET.
  const method = methodOf(own(metadata, 'method') ?? own(input, 'method') ?? 'GET');
  if (method === null) return null;
  const text = (max: number, ...candidates: unknown[]) =>
    candidates.map((one) => plainText(one, max)).find((one) => one !== '') ?? '';

  const params = readParams(input, method, address.url);
  const { plainPriceUsd, ...paid } = terms;
  return {
    entry: {
      url: address.url,
      method,
      priceUsd: paid.priceUsd,
      name: text(MAX_NAME, own(metadata, 'name'), own(metadata, 'path'), address.path),
      label: text(MAX_NAME, own(provider, 'name'), own(item, 'serviceName'), address.host),
      description: text(
        MAX_DESCRIPTION,
        own(metadata, 'description'),
        own(item, 'description'),
        own(first, 'description'),
        own(provider, 'description'),
      ),
      params,
      payTo: paid.payTo,
      host: address.host,
      network: payable.network,
      rail: paid.rail,
      direct: plainPriceUsd === null ? null : { url: address.url, priceUsd: plainPriceUsd },
      body: method === 'POST' ? readBody(input, params) : null,
      source: 'catalogue',
      category: text(MAX_CATEGORY, own(provider, 'category'), own(metadata, 'category')),
      site: readListedUrl(own(provider, 'website'))?.url ?? address.origin,
      networks: paid.networks,
      plainNetworks: paid.plainNetworks,
    },
    keywords: text(MAX_KEYWORDS, keywordsOf(item, provider, own(metadata, 'output'))),
  };
}

function keywordsOf(item: unknown, provider: unknown, output: unknown): string {
  const tags = [own(provider, 'tags'), own(item, 'tags')].find(Array.isArray) ?? [];
  const members = ownKeys(own(output, 'properties')) ?? [];
  const words = [...tags.slice(0, MAX_TAGS), own(provider, 'description'), ...members.slice(0, MAX_TAGS)];
  return words.filter((word) => typeof word === 'string').join(' ');
}

export const NO_CATALOGUE: Catalogue = {
  version: () => 0,
  listings: () => [],
  readAtMs: () => null,
  load: async () => {},
  read: async () => false,
};
