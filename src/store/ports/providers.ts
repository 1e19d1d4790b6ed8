/**
 * What one RPC provider said against others. Times in Unix milliseconds. `question`, `said` and `others` are short
 * texts, which the caller bounds to 500 characters.
 */
export interface ProviderNote {
  readonly host: string;
  /** `apart`: others agreed against this provider. `disputed`: two contradict each other, and no third has decided. */
  readonly kind: 'apart' | 'disputed';
  readonly question: string;
  readonly said: string;
  readonly others: string;
  readonly sinceMs: number;
  readonly untilMs: number;
}

/**
 * Which RPC providers have contradicted others, for all instances and over restarts. When a write resolves, it is on
 * disk.
 */
export interface ProviderNotes {
  /** The notes that have not expired at `nowMs`, oldest first. */
  list(nowMs: number): Promise<ProviderNote[]>;
  /**
   * Keeps a note. There is one for each host, kind and question: a later one replaces its texts and its end, and keeps
   * the older `sinceMs`. Deletes the notes that have expired at the note's `sinceMs`.
   */
  put(note: ProviderNote): Promise<void>;
  /** Ends the disputes over this question. What is set apart stays so. */
  agree(question: string): Promise<void>;
  /** Deletes all notes of a host, and returns their number. */
  trust(host: string): Promise<number>;
}
