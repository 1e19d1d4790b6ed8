import type { ListingRow, MarketBounds, MarketStore, StoredListing } from '../ports/market.ts';
import type { Pools } from './pool.ts';
import type { Retry } from './retry.ts';
import { fixed, statement } from './statement.ts';
import { createTransact, type Run } from './transaction.ts';

const SELECT = `
  SELECT place, domain, listing, method, listed_at AS "listedAt", priced_at AS "pricedAt", checked_at AS "checkedAt", reason, failures,
         offline_at AS "offlineAt", due_at AS "dueAt", calls, answered, median_latency_ms AS "medianLatencyMs"
    FROM market_listings`;
type Place = { place: string };

const FIND = statement<Place>(`${SELECT} WHERE place = @place`);
const CHANGED = statement<{ since: number }>(`${SELECT} WHERE revision > @since ORDER BY place`);
const DUE = statement<{ now: number; limit: number }>(
  `${SELECT} WHERE due_at <= @now ORDER BY due_at, place LIMIT @limit`,
);
const PLACES = fixed('SELECT place FROM market_listings ORDER BY place');
/** Counted by host, because the stored domain may come from an older rule. A host may end with a dot. */
const COUNTS = statement<{ below: string }>(`
  SELECT count(*) AS total,
         count(CASE WHEN right('.' || rtrim(split_part(place, '/', 1), '.'), length(@below::text)) = @below::text THEN 1 END) AS "ofDomain"
    FROM market_listings`);
const INSERT = statement<ListingRow>(`
  INSERT INTO market_listings (place, domain, listing, method, listed_at, priced_at, checked_at, reason, failures, offline_at, due_at,
                               calls, answered, revision)
  VALUES (@place, @domain, @listing, @method, @checkedAt::bigint, @pricedAt, @checkedAt::bigint, @reason, @failures, @offlineAt, @dueAt, 0, 0, 0)`);
const UPDATE = statement<ListingRow>(`
  UPDATE market_listings
     SET domain = @domain, listing = @listing, method = @method, priced_at = @pricedAt, checked_at = @checkedAt, reason = @reason,
         failures = @failures, offline_at = @offlineAt, due_at = @dueAt
   WHERE place = @place RETURNING place`);
const POSTPONE = statement<{ until: number; places: string[] }>(
  'UPDATE market_listings SET due_at = @until WHERE place = ANY(@places::text[])',
);
const REMOVE = statement<Place>('DELETE FROM market_listings WHERE place = @place RETURNING place');
const KEEP_CALL = statement<Place & { at: number; latencyMs: number | null }>(`
  INSERT INTO market_calls (place, at, latency_ms) VALUES (@place, @at, @latencyMs)
  ON CONFLICT (place, at) DO UPDATE SET latency_ms = excluded.latency_ms`);
const FORGET_CALLS = statement<Place & { keepFrom: number }>(
  'DELETE FROM market_calls WHERE place = @place AND at < @keepFrom',
);
/** The nearest-rank median: for an even number, the lower of the two middle values. */
const SUMMARISE = statement<Place & { revision: number }>(`
  UPDATE market_listings
     SET (calls, answered, median_latency_ms) = (
           SELECT count(*), count(latency_ms), percentile_disc(0.5) WITHIN GROUP (ORDER BY latency_ms)
             FROM market_calls WHERE place = @place::text),
         revision = @revision
   WHERE place = @place::text`);
const REVISION = fixed('SELECT revision FROM market_state WHERE id = 1');
const ADVANCE = fixed('UPDATE market_state SET revision = revision + 1 WHERE id = 1 RETURNING revision');
const WRITE = fixed('BEGIN ISOLATION LEVEL SERIALIZABLE');
/** All reads see one instant, and no other transaction waits. */
const SNAPSHOT = fixed('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');

/** The market's listings on PostgreSQL. */
export function createMarketStore(pools: Pools, retry: Retry): MarketStore {
  const write = createTransact(pools.writes, retry, WRITE);
  const snapshot = createTransact(pools.reads, retry, SNAPSHOT);

  return {
    find: async (place) => (await pools.read<StoredListing>(FIND({ place })))[0] ?? null,
    put: (row, latencyMs, bounds) => write((run) => put(run, row, latencyMs, bounds)),
    changesSince: (since) =>
      snapshot(async (run) => {
        const current = (await run<{ revision: number }>(REVISION))[0]?.revision ?? 0;
        if (current === since) return null;
        const places = (await run<Place>(PLACES)).map(({ place }) => place);
        return { revision: current, places, changed: await run<StoredListing>(CHANGED({ since })) };
      }),
    takeDue: (now, until, limit) =>
      write(async (run) => {
        const taken = await run<StoredListing>(DUE({ now, limit }));
        if (taken.length > 0) await run(POSTPONE({ until, places: taken.map(({ place }) => place) }));
        return taken;
      }),
    record: (row, latencyMs, keepFrom) =>
      write(async (run) => {
        if ((await run(UPDATE(row))).length === 0) return;
        await run(FORGET_CALLS({ place: row.place, keepFrom }));
        await keep(run, row, latencyMs);
      }),
    drop: (place) =>
      write(async (run) => {
        if ((await run(REMOVE({ place }))).length > 0) await run(ADVANCE);
      }),
  };
}

async function put(run: Run, row: ListingRow, latencyMs: number, { total, perDomain }: MarketBounds) {
  const isKnown = (await run(UPDATE(row))).length > 0;
  if (!isKnown) {
    const [there] = await run<{ total: number; ofDomain: number }>(COUNTS({ below: `.${row.domain}` }));
    if ((there?.total ?? 0) >= total) return 'market_full';
    if ((there?.ofDomain ?? 0) >= perDomain) return 'domain_full';
    await run(INSERT(row));
  }
  await keep(run, row, latencyMs);
  return isKnown ? 'updated' : 'listed';
}

async function keep(run: Run, { place, checkedAt }: ListingRow, latencyMs: number | null): Promise<void> {
  await run(KEEP_CALL({ place, at: checkedAt, latencyMs: latencyMs === null ? null : Math.round(latencyMs) }));
  const [state] = await run<{ revision: number }>(ADVANCE);
  await run(SUMMARISE({ place, revision: state?.revision ?? 0 }));
}
