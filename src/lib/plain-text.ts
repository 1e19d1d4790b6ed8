/** Characters that are read of a third party's text. That is enough for every field. */
const READ_AT_MOST = 20_000;

/** Control characters, and invisible or direction-changing ones (bidirectional marks, zero-width, tags, private use). */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const MARKUP = /<\/?[a-zA-Z!?][^<>]*>/g;

/**
 * A third party's text as one line of plain text of at most `max` UTF-16 units. Empty for a value that is no text.
 * Markup is removed as a whole and no angle bracket remains, so that the text cannot become HTML where it is shown.
 */
export function plainText(value: unknown, max: number): string {
  if (typeof value !== 'string') return '';
  const line = value
    .slice(0, READ_AT_MOST)
    .toWellFormed()
    .replace(/[\t\n\v\f\r]/g, ' ')
    .replace(UNSEEN, '')
    .replace(MARKUP, ' ')
    .replace(/[<>]/g, ' ')
    .replace(/ {2,}/g, ' ')
    .trim();
  return line.length <= max ? line : cut(line, max);
}

/** Shortens with an ellipsis, never inside a surrogate pair. */
function cut(line: string, max: number): string {
  const end = /[\uD800-\uDBFF]/.test(line.charAt(max - 2)) ? max - 2 : max - 1;
  return `${line.slice(0, end).trimEnd()}…`;
}
