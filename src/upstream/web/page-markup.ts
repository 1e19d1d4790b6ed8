/** Markup that is safe to build a tree from. */
export interface BoundedMarkup {
  readonly html: string;
  /** True when the end was cut off. */
  readonly cut: boolean;
}

const LESS = 0x3c;
const GREATER = 0x3e;
const AMPERSAND = 0x26;
const EQUALS = 0x3d;
const SLASH = 0x2f;

/**
 * Removes scripts and styles, and cuts the markup where its tree would become too large. A node, an attribute or a text between two entities takes
 * a kilobyte in memory and may take three bytes of markup, so a page's size does not limit its tree. A worker that runs out of memory can end the
 * whole process. It makes one pass and counts too much rather than too little.
 */
export function boundMarkup(html: string, maxTokens: number): BoundedMarkup {
  const kept: string[] = [];
  let from = 0;
  let tokens = 0;
  let at = 0;
  while (at < html.length && tokens <= maxTokens) {
    const code = html.charCodeAt(at);
    if (code === AMPERSAND) tokens += 1;
    if (code !== LESS) {
      at += 1;
      continue;
    }
    const raw = rawEnd(html, at);
    if (raw !== null) {
      kept.push(html.slice(from, at));
      from = raw;
      at = raw;
      continue;
    }
    const tag = scanTag(html, at, maxTokens - tokens);
    tokens += tag.tokens;
    at = tag.end;
  }
  kept.push(html.slice(from, at));
  return { html: kept.join(''), cut: at < html.length };
}

/** The end of a script or style that begins here; null when none begins here. One without an end takes the rest of the page, as in a browser. */
function rawEnd(html: string, at: number): number | null {
  const name = /^<(script|style)[\s/>]/i.exec(html.slice(at, at + 8))?.[1];
  if (name === undefined) return null;
  const end = new RegExp(`</${name}`, 'gi');
  end.lastIndex = at;
  const close = end.exec(html) ? html.indexOf('>', end.lastIndex) : -1;
  return close < 0 ? html.length : close + 1;
}

/**
 * Counts a tag and its attributes up to the tag's end, by the separators outside quotes. A quote opens a value only after `=`; anywhere else it is
 * part of a name (HTML, 13.2.5), and treating it as a quote would hide the attributes after it.
 */
function scanTag(html: string, start: number, budget: number): { end: number; tokens: number } {
  let tokens = 1;
  let last = LESS;
  let at = start + 1;
  while (at < html.length && tokens <= budget) {
    const code = html.charCodeAt(at);
    if (code === GREATER) return { end: at + 1, tokens };
    if (last === EQUALS && (code === 0x22 || code === 0x27)) {
      const close = html.indexOf(html.charAt(at), at + 1);
      at = close < 0 ? html.length : close + 1;
      tokens += 1;
      last = code;
      continue;
    }
    const separates = code <= 0x20 || code === SLASH;
    if (separates && last !== EQUALS) tokens += last <= 0x20 || last === SLASH ? 0 : 1;
    if (!separates || last !== EQUALS) last = code;
    at += 1;
  }
  return { end: at, tokens };
}
