/** Remembers the newest `max` payment hashes. `add` returns whether a hash is new. After a restart, the ledger's key still refuses a used hash. */
export function createRecentHashes(max: number) {
  const seen = new Set<string>();
  return {
    add(hash: Uint8Array): boolean {
      const key = Buffer.from(hash).toString('base64');
      if (seen.has(key)) return false;
      seen.add(key);
      const oldest = seen.size > max ? seen.values().next().value : undefined;
      if (oldest !== undefined) seen.delete(oldest);
      return true;
    },
  };
}
