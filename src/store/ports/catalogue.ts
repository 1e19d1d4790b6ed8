/** A catalogue as it was last read well. */
export interface CatalogueCopy {
  /** Unix milliseconds. */
  readonly readAt: number;
  /** JSON text, in whatever form its writer reads. */
  readonly entries: string;
}

/** Keeps the last good copy of the third-party catalogue: what `save` resolves with is on disk. */
export interface CatalogueStore {
  load(): Promise<CatalogueCopy | null>;
  /** When the stored copy was read, without reading it; null while there is none. Another process may have stored it. */
  readAt(): Promise<number | null>;
  save(copy: CatalogueCopy): Promise<void>;
}
