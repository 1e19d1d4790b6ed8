import { type Html, html } from './html.ts';

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

/** Shown for a value that is not known, in place of a misleading zero. */
export const UNKNOWN = html`<span class="unknown">not known</span>`;

/** A count or a measure for people, with thousands separators and at most two decimals. */
export function showNumber(value: number): string {
  return NUMBER.format(value);
}

/** A decimal string, rounded for display. The API returns all digits. */
export function showDecimal(text: string, places: number): string {
  return Number(text).toLocaleString('en', { maximumFractionDigits: places });
}

/** A number with its unit, or "not known". */
export function showMeasure(value: number | null | undefined, unit: string): Html {
  return value === null || value === undefined ? UNKNOWN : html`${showNumber(value)} ${unit}`;
}

/** A moment in UTC, so that the page is the same for all readers. Unix seconds. */
export function showTime(at: number): Html {
  const iso = new Date(at * 1000).toISOString();
  return html`<time datetime="${iso.slice(0, 19)}Z">${iso.slice(0, 10)} ${iso.slice(11, 19)}</time>`;
}

/** The time of day alone. */
export function showTimeOfDay(at: number): Html {
  const iso = new Date(at * 1000).toISOString();
  return html`<time datetime="${iso.slice(0, 19)}Z">${iso.slice(11, 19)}</time>`;
}

/** A shortened hash for tables. The link or its title has the whole hash. */
export function shortHash(hash: string): string {
  return hash.length <= 14 ? hash : `${hash.slice(0, 8)}…${hash.slice(-4)}`;
}

/** A third party's URL as a link when its scheme is safe for a browser; otherwise its text alone. */
export function showLink(url: string, text: string): Html {
  const { protocol } = URL.parse(url) ?? {};
  if (protocol !== 'https:' && protocol !== 'http:') return html`${text}`;
  return html`<a href="${url}" rel="noopener noreferrer nofollow ugc">${text}</a>`;
}
