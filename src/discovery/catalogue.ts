import { z } from 'zod';
import type { Clock } from '../lib/clock.ts';
import type { CatalogueStore } from '../store/ports/catalogue.ts';
import type { Upstream } from '../upstream/client/client.ts';
import type { Payable } from './accepts.ts';
import { readCatalogueItem } from './catalogue-item.ts';
import { readPages } from './catalogue-pages.ts';
import { type Listing, listingSchema } from './entry.ts';

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
