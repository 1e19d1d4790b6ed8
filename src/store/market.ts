import type { LedgerDatabase, Plan } from './db/port.ts';
import { first, onlyRowOf, rowsOf, sql } from './db/sql.ts';
import type { ListingRow, MarketBounds, MarketChanges, MarketStore, StoredListing } from './ports/market.ts';

// The market's listings and the calls that checked them. Third parties submit them once, and nothing can rebuild them.
// Each write decides between statements, so it is a plan under the turn `others`.

interface Place {
  readonly place: string;
}

const LISTING = `
  SELECT place, domain, listing, method, listed_at AS "listedAt", priced_at AS "pricedAt", checked_at AS "checkedAt",
         reason, failures, offline_at AS "offlineAt", due_at AS "dueAt", calls, answered,
         median_latency_ms AS "medianLatencyMs"
    FROM market_listings`;
const FIND = sql<Place, StoredListing>(`${LISTING} WHERE place = @place`);
const CHANGED = sql<{ since: number }, StoredListing>(`${LISTING} WHERE revision > @since ORDER BY place`);
const DUE = sql<{ now: number; limit: number }, StoredListing>(
  `${LISTING} WHERE due_at <= @now ORDER BY due_at, place LIMIT @limit`,
);
const PLACES = sql<object, Place>('SELECT place FROM market_listings ORDER BY place');
// Counted by host, because the stored domain may come from an older rule. A host may end with a dot, and a
// listing of a root has no path.
const COUNTS = sql<{ below: string }, { total: number; ofDomain: number }>(`
  SELECT count(*) AS total,
         count(*) FILTER (WHERE substr(host, length(host) - length(@below::text) + 1) = @below::text) AS "ofDomain"
    FROM (SELECT '.' || rtrim(substr(place, 1, {INSTR}(place || '/', '/') - 1), '.') AS host FROM market_listings)
      AS hosts`);
const INSERT = sql<ListingRow>(`
  INSERT INTO market_listings (place, domain, listing, method, listed_at, priced_at, checked_at, reason, failures,
                               offline_at, due_at, calls, answered, revision)
  VALUES (@place, @domain, @listing, @method, @checkedAt::bigint, @pricedAt, @checkedAt::bigint, @reason, @failures,
          @offlineAt, @dueAt, 0, 0, 0)`);
const UPDATE = sql<ListingRow>(`
  UPDATE market_listings
     SET domain = @domain, listing = @listing, method = @method, priced_at = @pricedAt, checked_at = @checkedAt,
         reason = @reason, failures = @failures, offline_at = @offlineAt, due_at = @dueAt
   WHERE place = @place`);
const POSTPONE = sql<{ until: number; places: readonly string[] }>(
  'UPDATE market_listings SET due_at = @until WHERE place IN @places',
);
const REMOVE = sql<Place>('DELETE FROM market_listings WHERE place = @place');
const KEEP_CALL = sql<Place & { at: number; latencyMs: number | null }>(`
  INSERT INTO market_calls (place, at, latency_ms) VALUES (@place, @at, @latencyMs)
  ON CONFLICT (place, at) DO UPDATE SET latency_ms = excluded.latency_ms`);
const FORGET_CALLS = sql<Place & { keepFrom: number }>(
  'DELETE FROM market_calls WHERE place = @place AND at < @keepFrom',
);
// The nearest-rank median: for an even number, the lower of the two middle values. -1 / 2 is 0 in both databases.
const SUMMARISE = sql<Place & { revision: number }>(`
  UPDATE market_listings
     SET calls = (SELECT count(*) FROM market_calls WHERE place = @place::text),
         answered = (SELECT count(latency_ms) FROM market_calls WHERE place = @place::text),
         median_latency_ms = (
           SELECT latency_ms FROM market_calls WHERE place = @place::text AND latency_ms IS NOT NULL
            ORDER BY latency_ms
            LIMIT 1 OFFSET (SELECT (count(latency_ms) - 1) / 2 FROM market_calls WHERE place = @place::text)),
         revision = @revision
   WHERE place = @place::text`);
const REVISION = sql<object, { revision: number }>('SELECT revision FROM market_state WHERE id = 1');
const ADVANCE = sql<object, { revision: number }>(
  'UPDATE market_state SET revision = revision + 1 WHERE id = 1 RETURNING revision',
);

export function createMarketStore(db: LedgerDatabase): MarketStore {
  return {
    find: (place) => first(db, FIND({ place })),
    put: (row, latencyMs, bounds) => db.decide('others', () => put(row, latencyMs, bounds)),
    changesSince: (since) => db.look(() => changesSince(since)),
    takeDue: (now, until, limit) => db.decide('others', () => takeDue(now, until, limit)),
    record: (row, latencyMs, keepFrom) => db.decide('others', () => record(row, latencyMs, keepFrom)),
    drop: (place) => db.decide('others', () => drop(place)),
  };
}

function* put(row: ListingRow, latencyMs: number, { total, perDomain }: MarketBounds): Plan<PutOutcome> {
  const isKnown = (yield UPDATE(row)).changes > 0;
  if (!isKnown) {
    const there = yield* onlyRowOf(COUNTS({ below: `.${row.domain}` }));
    if (there.total >= total) return 'market_full';
    if (there.ofDomain >= perDomain) return 'domain_full';
    yield INSERT(row);
  }
  yield* keep(row, latencyMs);
  return isKnown ? 'updated' : 'listed';
}

type PutOutcome = Awaited<ReturnType<MarketStore['put']>>;

function* keep({ place, checkedAt }: ListingRow, latencyMs: number | null): Plan<void> {
  yield KEEP_CALL({ place, at: checkedAt, latencyMs: latencyMs === null ? null : Math.round(latencyMs) });
  const { revision } = yield* onlyRowOf(ADVANCE({}));
  yield SUMMARISE({ place, revision });
}

function* changesSince(since: number): Plan<MarketChanges | null> {
  const { revision } = yield* onlyRowOf(REVISION({}));
  if (revision === since) return null;
  const places = yield* rowsOf(PLACES({}));
  const changed = yield* rowsOf(CHANGED({ since }));
  return { revision, places: places.map(({ place }) => place), changed };
}

function* takeDue(now: number, until: number, limit: number): Plan<StoredListing[]> {
  const due = yield* rowsOf(DUE({ now, limit }));
  if (due.length > 0) yield POSTPONE({ until, places: due.map(({ place }) => place) });
  return [...due];
}

function* record(row: ListingRow, latencyMs: number | null, keepFrom: number): Plan<void> {
  if ((yield UPDATE(row)).changes === 0) return;
  yield FORGET_CALLS({ place: row.place, keepFrom });
  yield* keep(row, latencyMs);
}

function* drop(place: string): Plan<void> {
  if ((yield REMOVE({ place })).changes > 0) yield ADVANCE({});
}
