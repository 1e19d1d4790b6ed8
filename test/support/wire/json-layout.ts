/** Values that fit this width stay on one line. */
const WIDTH = 120;
/** A longer value is shown once in a transcript. Later ones with the same bytes refer to it. */
const SHOWN_ONCE = 240;
/** Matches what may contain white space (a string, a placeholder), and white space outside of them. */
const STRING_OR_BLANK = /"(?:[^"\\]|\\.)*"|<[^<>]*>|\s/g;
const MEMBER = /^("(?:[^"\\]|\\.)*":·*)([\s\S]*)$/;

/** The first place of each long value of a transcript, by its text. */
export type Shown = Map<string, string>;

/**
 * Breaks JSON into lines without changing it: member order and the spelling of strings and numbers stay. White space outside a string is shown as a
 * dot.
 * `where` names this place. A long value that `shown` has already is replaced by the name of its first place.
 */
export function layJson(text: string, shown: Shown, where: string): string {
  const visible = text.replace(STRING_OR_BLANK, (part) => (/^["<]/.test(part) ? part : '·'));
  return lay(visible, 0, { shown, where });
}

interface Place {
  readonly shown: Shown;
  readonly where: string;
}

function lay(text: string, indent: number, place: Place): string {
  if (!/^[{[].*[}\]]$/.test(text)) return text;
  if (text.length >= SHOWN_ONCE) {
    const before = place.shown.get(text);
    if (before !== undefined) return `<as in: ${before}>`;
    place.shown.set(text, place.where);
  }
  if (text.length + indent <= WIDTH) return text;
  const pad = ' '.repeat(indent + 2);
  const parts = splitParts(text.slice(1, -1)).map((part) => {
    const [, name = '', value = part] = MEMBER.exec(part) ?? [];
    return `${pad}${name}${name && ' '}${lay(value, indent + 2, place)}`;
  });
  return `${text[0]}\n${parts.join(',\n')}\n${' '.repeat(indent)}${text.at(-1)}`;
}

/** The members or elements of a container, whose text is given without brackets. */
function splitParts(inner: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (const { 0: token, index } of inner.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],]/g)) {
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    if (token !== ',' || depth > 0) continue;
    parts.push(inner.slice(start, index));
    start = index + 1;
  }
  return [...parts, inner.slice(start)];
}
