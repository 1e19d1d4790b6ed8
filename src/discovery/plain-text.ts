/** Nothing that a stranger wrote needs to be read further than this to fill any field. */
const READ_AT_MOST = 20_000;

/** Control characters, and what is invisible or turns text around (bidirectional marks, zero-width, tags, private use). */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const MARKUP = /<\/?[a-zA-Z!?][^<>]*>/g;

/**
 * A stranger's text as one line of plain text of at most `max` UTF-16 units; empty for what is no text.
 * Markup goes as a whole, and no angle bracket stays, so that the text cannot become HTML anywhere it is shown.
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

/** Shortened with an ellipsis, never between the two halves of a character. */
function cut(line: string, max: number): string {
  const end = /[\uD800-\uDBFF]/.test(line.charAt(max - 2)) ? max - 2 : max - 1;
  return `${line.slice(0, end).trimEnd()}…`;
}
