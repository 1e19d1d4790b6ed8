/** The last catalogue that was read without a failure. */
export interface CatalogueCopy {
  /** Unix milliseconds. */
  readonly readAt: number;
  /** JSON text; only its writer knows the form. */
  readonly entries: string;
}

/** Keeps the last good copy of the third-party catalogue. The copy is on disk when `save` resolves. */
export interface CatalogueStore {
  load(): Promise<CatalogueCopy | null>;
  /**
   * When the stored copy was read, without reading it; null while there is none. Another process may have stored it.
   */
  readAt(): Promise<number | null>;
  save(copy: CatalogueCopy): Promise<void>;
}
