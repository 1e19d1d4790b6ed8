import { z } from 'zod';
import { UpstreamFailed } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { own, ownKeys, plainText } from '../lib/untrusted.ts';
import type { CatalogueStore } from '../store/ports/catalogue.ts';
import type { Upstream } from '../upstream/client/client.ts';
import { type Payable, readAccepts } from './challenge.ts';
import { readBody, readParams } from './description.ts';
import { type Listing, listingSchema, readListedUrl } from './entry.ts';

/** The third-party catalogue as the search reads it: a copy in memory. */
export interface Catalogue {
  /** A number that changes with every change of the copy. */
  version(): number;
  listings(): readonly Listing[];
  /** Unix milliseconds of the last complete read; null before the first. */
  readAtMs(): number | null;
  /** Takes the stored copy when it is newer than the one in memory. Never rejects. */
  load(): Promise<void>;
  /** Reads the catalogue once. True when the copy was renewed. A read that fails or looks wrong changes nothing and is logged. Never rejects. */
  read(signal: AbortSignal): Promise<boolean>;
}

interface CatalogueOptions {
  readonly upstream: Upstream;
  readonly url: string;
  readonly payable: Payable;
  readonly store: CatalogueStore;
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
}

/** All chains together had about 1,200 entries in September 2026. */
const MAX_ENTRIES = 5000;
/** The most JSON that goes into memory, the index and the ledger's file. */
const MAX_BYTES = 8 * 1024 * 1024;
/** A catalogue that loses more than nine tenths of its entries at once has probably failed itself, so the read is not believed at first. */
const LEAST_SHARE = 0.1;
/** A shrunken catalogue is believed after this time, which is longer than an outage. */
const BELIEVED_AFTER_MS = 24 * 3_600_000;

const stored = z.array(listingSchema);

/** Used when no catalogue is configured. It lists nothing and reads nothing. */
export const NO_CATALOGUE: Catalogue = {
  version: () => 0,
  listings: () => [],
  readAtMs: () => null,
  load: async () => {},
  read: async () => false,
};

/** The entries in memory, and when they were read. */
interface Copy {
  readonly readAtMs: number;
  readonly listings: readonly Listing[];
}

/** Reads a catalogue of paid services and keeps the entries that are payable on our chain. The last good copy survives failures and restarts. */
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

  /** A copy that cannot be stored is still searched. The next read stores its own. */
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

/** The entries of a stored copy. Entries of another chain are left out. Throws when it is malformed. */
function parseStored(entries: string, { network }: Payable): Listing[] {
  return stored.parse(JSON.parse(entries)).filter(({ entry }) => entry.network === network);
}

/** Every entry that is payable on our chain. `isCut` is true when there were more than the limits allow. */
async function readAll(
  { upstream, url, payable, clock }: Omit<CatalogueOptions, 'store' | 'log'>,
  signal: AbortSignal,
): Promise<{ listings: Listing[]; isCut: boolean }> {
  const listings: Listing[] = [];
  let bytes = 0;
  const pages = readPages({ upstream, url, network: payable.network, clock, signal });
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

/** Whether a read is more likely a failure than the truth. */
function isDoubtful(copy: Copy | null, entries: number, nowMs: number): boolean {
  if (copy === null || nowMs - copy.readAtMs > BELIEVED_AFTER_MS) return false;
  return copy.listings.length > 0 && entries < copy.listings.length * LEAST_SHARE;
}

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
async function* readPages(options: PagesOptions): AsyncGenerator<readonly unknown[], boolean> {
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

const MAX_NAME = 100;
const MAX_DESCRIPTION = 500;
const MAX_CATEGORY = 60;
const MAX_KEYWORDS = 400;
const MAX_TAGS = 20;

/**
 * Maps one item of a catalogue to a listing. Null when it is not payable on our chain, has no usable address, or has a method other than GET and
 * POST.
 * Reads Circle's shape, Coinbase's and x402 version 1's. All of it is untrusted text.
 */
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
  const method = readMethod(own(metadata, 'method') ?? own(input, 'method'));
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

/** A missing method means GET in the known catalogues. */
function readMethod(method: unknown): 'GET' | 'POST' | null {
  if (method === undefined || method === null) return 'GET';
  const named = typeof method === 'string' ? method.toUpperCase() : '';
  return named === 'GET' || named === 'POST' ? named : null;
}

/** Search keywords: the tags, the provider's description of itself, and the names of the answer's members. */
function keywordsOf(item: unknown, provider: unknown, output: unknown): string {
  const tags = [own(provider, 'tags'), own(item, 'tags')].find(Array.isArray) ?? [];
  const members = ownKeys(own(output, 'properties')) ?? [];
  const words = [...tags.slice(0, MAX_TAGS), own(provider, 'description'), ...members.slice(0, MAX_TAGS)];
  return words.filter((word) => typeof word === 'string').join(' ');
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
