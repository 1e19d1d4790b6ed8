/** Reads once between two writes of the chain database. `version` differs after each write. */
export function keptUntilWritten<T>(version: () => number, read: () => T): () => T {
  let kept: { readonly version: number; readonly value: T } | null = null;
  return () => {
    const now = version();
    if (kept?.version !== now) kept = { version: now, value: read() };
    return kept.value;
  };
}
