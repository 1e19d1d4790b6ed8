/** A small image of a page. Its licence is its own. */
export interface Thumbnail {
  readonly url: string;
  /** In pixels; null when Wikipedia does not say. */
  readonly width: number | null;
  readonly height: number | null;
}

/** Wikimedia's addresses are shorter. */
const MAX_URL = 1000;

/** What Wikipedia's APIs send of it, each under names of its own. */
interface Sent {
  readonly source?: string | undefined;
  readonly url?: string | undefined;
  readonly width?: number | null | undefined;
  readonly height?: number | null | undefined;
}

/** The image in one shape. Null for none, and for one whose address is no http(s) address. */
export function readThumbnail(sent: Sent | null | undefined): Thumbnail | null {
  const stated = sent?.source ?? sent?.url ?? '';
  const url = stated.startsWith('//') ? `https:${stated}` : stated;
  if (!sent || url.length > MAX_URL || !/^https?:/.test(url) || !URL.canParse(url)) return null;
  return { url, width: sent.width ?? null, height: sent.height ?? null };
}
