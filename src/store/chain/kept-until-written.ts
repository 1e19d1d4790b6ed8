/**
 * Wraps `read` so that it runs once between two writes. `version` must be of the database that `read` reads, and differ after each write. Callers share the
 * value and must not change it. When `read` throws, nothing is kept.
 */
export function keptUntilWritten<T>(version: () => number, read: () => T): () => T {
  let kept: { readonly version: number; readonly value: T } | null = null;
  return () => {
    const now = version();
    if (kept?.version !== now) kept = { version: now, value: read() };
    return kept.value;
  };
}
