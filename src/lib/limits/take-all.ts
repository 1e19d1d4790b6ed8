import { CLIENTS_PER_SITE, siteKey } from './client-key.ts';
import type { ClientWindows } from './client-limit.ts';
import type { ReadableWindows } from './minute-windows.ts';

/** One of the limits that an event counts under. */
export interface Take {
  readonly windows: ReadableWindows;
  readonly key: string;
  /** 0 is off. */
  readonly limit: number;
  /** The error of an event beyond the limit. */
  refusal(resetSeconds: number): Error;
}

/** The limits of a client, and of its site where it has one. `limit` is a client's. */
export function clientTakes(
  { clients, sites }: ClientWindows<ReadableWindows>,
  client: string,
  limit: number,
  refusal: Take['refusal'],
): readonly Take[] {
  const own: Take = { windows: clients, key: client, limit, refusal };
  const site = siteKey(client);
  return site === null ? [own] : [own, { windows: sites, key: site, limit: limit * CLIENTS_PER_SITE, refusal }];
}

/**
 * Counts one event under all of these limits, and returns a function that takes it back because it did not happen. Throws the refusal of the first limit
 * that is reached; then nothing is counted.
 */
export function takeAll(takes: readonly Take[]): () => void {
  for (const { windows, key, limit, refusal } of takes) {
    const { count, resetSeconds } = windows.read(key);
    if (limit > 0 && count >= limit) throw refusal(resetSeconds);
  }
  for (const { windows, key } of takes) windows.count(key);
  return () => {
    for (const { windows, key } of takes) windows.takeBack(key);
  };
}
