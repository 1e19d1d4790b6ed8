/** Text cut to a length, and whether anything was cut away. */
export interface Clipped {
  readonly text: string;
  /** How many characters `text` has: Unicode code points, as JSON Schema counts them. */
  readonly characters: number;
  readonly truncated: boolean;
}

/** Cuts after `max` code points, never inside a surrogate pair. A lone surrogate becomes U+FFFD, because JSON parsers may refuse it. */
export function clipText(text: string, max: number): Clipped {
  let units = 0;
  let characters = 0;
  while (units < text.length && characters < max) {
    units += (text.codePointAt(units) ?? 0) > 0xffff ? 2 : 1;
    characters += 1;
  }
  return { text: text.slice(0, units).toWellFormed(), characters, truncated: units < text.length };
}
