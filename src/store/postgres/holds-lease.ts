/**
 * True when the lease has the token `@fencingToken`, and when the token is null, in SQL. The lease's row stays locked until the write is on disk, so
 * no other instance takes the lease meanwhile. When another instance has taken it since this transaction began, the transaction is rolled back and
 * retried.
 */
export const HOLDS_LEASE = `(@fencingToken::bigint IS NULL
      OR EXISTS (SELECT 1 FROM instance_lease WHERE instance_lease.id = 1 AND fence = @fencingToken::bigint FOR KEY SHARE))`;
