import type { Sqlite } from '../../lib/sqlite-file.ts';
import type { ListingRow, MarketBounds, MarketStore, StoredListing } from '../ports/market.ts';

const SELECT = `
  SELECT place, domain, listing, method, listed_at AS listedAt, priced_at AS pricedAt, checked_at AS checkedAt, reason, failures,
         offline_at AS offlineAt, due_at AS dueAt, calls, answered, median_latency_ms AS medianLatencyMs
    FROM market_listings`;

const INSERT = `
  INSERT INTO market_listings (place, domain, listing, method, listed_at, priced_at, checked_at, reason, failures, offline_at, due_at,
                               calls, answered, revision)
  VALUES (@place, @domain, @listing, @method, @checkedAt, @pricedAt, @checkedAt, @reason, @failures, @offlineAt, @dueAt, 0, 0, 0)`;

const UPDATE = `
  UPDATE market_listings
     SET domain = @domain, listing = @listing, method = @method, priced_at = @pricedAt, checked_at = @checkedAt, reason = @reason,
         failures = @failures, offline_at = @offlineAt, due_at = @dueAt
   WHERE place = @place`;

/** The nearest-rank median: for an even number, the lower of the two middle values. */
const SUMMARISE = `
  UPDATE market_listings
     SET calls = (SELECT count(*) FROM market_calls WHERE place = @place),
         answered = (SELECT count(latency_ms) FROM market_calls WHERE place = @place),
         median_latency_ms = (
           SELECT latency_ms FROM market_calls WHERE place = @place AND latency_ms IS NOT NULL ORDER BY latency_ms
            LIMIT 1 OFFSET (SELECT max(count(latency_ms) - 1, 0) / 2 FROM market_calls WHERE place = @place)),
         revision = @revision
   WHERE place = @place`;

/** Counted by host, because the stored domain may come from an older rule. A host may end with a dot. */
const COUNT_DOMAIN = `
  SELECT count(*) FROM market_listings
   WHERE substr('.' || rtrim(substr(place, 1, instr(place, '/') - 1), '.'), -length(@below)) = @below`;

/** The market's listings on the ledger's database. Third parties submit them once, and nothing can rebuild them. */
export function createMarketStore(db: Sqlite): MarketStore {
  const find = db.prepare<[string], StoredListing>(`${SELECT} WHERE place = ?`);
  const changed = db.prepare<[number], StoredListing>(`${SELECT} WHERE revision > ?`);
  const due = db.prepare<[number, number], StoredListing>(`${SELECT} WHERE due_at <= ? ORDER BY due_at LIMIT ?`);
  const places = db.prepare<[], string>('SELECT place FROM market_listings').pluck();
  const countAll = db.prepare<[], number>('SELECT count(*) FROM market_listings').pluck();
  const countDomain = db.prepare<{ below: string }, number>(COUNT_DOMAIN).pluck();
  const insert = db.prepare(INSERT);
  const update = db.prepare(UPDATE);
  const postpone = db.prepare('UPDATE market_listings SET due_at = ? WHERE place = ?');
  const remove = db.prepare('DELETE FROM market_listings WHERE place = ?');
  const keepCall = db.prepare(
    'INSERT OR REPLACE INTO market_calls (place, at, latency_ms) VALUES (@place, @checkedAt, @latencyMs)',
  );
  const forgetCalls = db.prepare('DELETE FROM market_calls WHERE place = ? AND at < ?');
  const summarise = db.prepare(SUMMARISE);
  const revision = db.prepare<[], number>('SELECT revision FROM market_state').pluck();
  const advance = db.prepare<[], number>('UPDATE market_state SET revision = revision + 1 RETURNING revision').pluck();

  function keep(row: ListingRow, latencyMs: number | null): void {
    keepCall.run({
      place: row.place,
      checkedAt: row.checkedAt,
      latencyMs: latencyMs === null ? null : Math.round(latencyMs),
    });
    summarise.run({ place: row.place, revision: advance.get() });
  }

  const put = db.transaction((row: ListingRow, latencyMs: number, { total, perDomain }: MarketBounds) => {
    const isKnown = update.run(row).changes > 0;
    if (!isKnown) {
      if ((countAll.get() ?? 0) >= total) return 'market_full';
      if ((countDomain.get({ below: `.${row.domain}` }) ?? 0) >= perDomain) return 'domain_full';
      insert.run(row);
    }
    keep(row, latencyMs);
    return isKnown ? 'updated' : 'listed';
  });
  const record = db.transaction((row: ListingRow, latencyMs: number | null, keepFrom: number) => {
    if (update.run(row).changes === 0) return;
    forgetCalls.run(row.place, keepFrom);
    keep(row, latencyMs);
  });
  const takeDue = db.transaction((now: number, until: number, limit: number) => {
    const taken = due.all(now, limit);
    for (const { place } of taken) postpone.run(until, place);
    return taken;
  });
  const drop = db.transaction((place: string) => {
    if (remove.run(place).changes > 0) advance.get();
  });
  const changesSince = db.transaction((since: number) => {
    const current = revision.get() ?? 0;
    return current === since ? null : { revision: current, places: places.all(), changed: changed.all(since) };
  });

  return {
    find: async (place) => find.get(place) ?? null,
    put: async (row, latencyMs, bounds) => put.immediate(row, latencyMs, bounds),
    changesSince: async (since) => changesSince(since),
    takeDue: async (now, until, limit) => takeDue.immediate(now, until, limit),
    record: async (row, latencyMs, keepFrom) => record.immediate(row, latencyMs, keepFrom),
    drop: async (place) => drop.immediate(place),
  };
}
