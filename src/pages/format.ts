import { type Html, html } from './html.ts';

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

/** What stands where nothing is known; never a zero. */
export const UNKNOWN = html`<span class="unknown">not known</span>`;

/** A count or a measure for people, with separators, at most two decimals. */
export function showNumber(value: number): string {
  return NUMBER.format(value);
}

/** A decimal string rounded for the eye; the API has all of it. */
export function showDecimal(text: string, places: number): string {
  return Number(text).toLocaleString('en', { maximumFractionDigits: places });
}

/** A number with its unit, or that it is not known. */
export function showMeasure(value: number | null | undefined, unit: string): Html {
  return value === null || value === undefined ? UNKNOWN : html`${showNumber(value)} ${unit}`;
}

/** A moment, in UTC so that a page reads the same to everybody. Unix seconds. */
export function showTime(at: number): Html {
  const iso = new Date(at * 1000).toISOString();
  return html`<time datetime="${iso.slice(0, 19)}Z">${iso.slice(0, 10)} ${iso.slice(11, 19)}</time>`;
}

/** The same without its day. */
export function showTimeOfDay(at: number): Html {
  const iso = new Date(at * 1000).toISOString();
  return html`<time datetime="${iso.slice(0, 19)}Z">${iso.slice(11, 19)}</time>`;
}

/** A hash short enough for a table; whoever needs the whole follows the link or copies the title. */
export function shortHash(hash: string): string {
  return hash.length <= 14 ? hash : `${hash.slice(0, 8)}…${hash.slice(-4)}`;
}

/** A stranger's address as a link, if it is one that a browser may be sent to; else its text alone. */
export function showLink(url: string, text: string): Html {
  const { protocol } = URL.parse(url) ?? {};
  if (protocol !== 'https:' && protocol !== 'http:') return html`${text}`;
  return html`<a href="${url}" rel="noopener noreferrer nofollow ugc">${text}</a>`;
}
