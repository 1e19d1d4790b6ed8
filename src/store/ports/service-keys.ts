/** Random keys that are made once for a ledger. Every instance and every restart gets the same. */
export interface ServiceKeyStore {
  /**
   * Returns the key of this name. Where the ledger has none yet, `fresh` becomes the key; of concurrent calls one wins.
   */
  keep(name: string, fresh: Uint8Array): Promise<Uint8Array>;
}
