/** In characters. It is enough for any honest message. */
const MAX_LENGTH = 500;

/**
 * Makes a third party's text safe to print: of limited length, and without control characters, which could change what
 * the terminal shows. Its JSON may have anything where a text belongs, and that must not cost the buyer the answer.
 */
export function printable(text: unknown): string {
  const clean = textOf(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ');
  return clean.length > MAX_LENGTH ? `${clean.slice(0, MAX_LENGTH)}…` : clean;
}

/** JSON for what is no text. `String` would call a third party's `toString`, which may be no function. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
