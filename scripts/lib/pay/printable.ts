/** Long enough for any honest message. */
const MAX_LENGTH = 500;

/** Foreign text made safe to print: without control characters, which could rewrite what the terminal shows, and not endless. */
export function printable(text: string): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ');
  return clean.length > MAX_LENGTH ? `${clean.slice(0, MAX_LENGTH)}…` : clean;
}
