/** One dependency of a Python package. */
export interface Requirement {
  /** As its author spells it. */
  readonly name: string;
  /** Extras of the dependency that are required: `requests[socks]`. */
  readonly extras: string[];
  /** For example `>=1.21.1,<3`; null: any version. */
  readonly specifier: string | null;
  /** The extra of this package that requires the dependency; null when none does, or when the marker is too complex to evaluate. */
  readonly extra: string | null;
  /** The condition beside the extra, as written; null: none. */
  readonly marker: string | null;
}

const NAME = /^([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[([^\]]*)\])?/;

/**
 * Reads one `Requires-Dist` line in today's spelling (`a>=1; extra == "x"`) or the old one (`a (>=1) ; extra == 'x'`), or null when it is neither.
 * It takes time linear to the line. The existing parser libraries take a third of a millisecond a line, and any account can upload such text.
 */
export function parseRequirement(line: string): Requirement | null {
  const text = line.trim();
  const named = NAME.exec(text);
  if (!named?.[1]) return null;
  const { head, marker } = splitMarker(text.slice(named[0].length));
  const extras = (named[2] ?? '').split(',').map((part) => part.trim());
  return {
    name: named[1],
    extras: extras.filter((part) => part !== ''),
    specifier: tidySpecifier(head),
    ...readMarker(marker),
  };
}

/** A URL may hold semicolons, so after `@` the marker begins only at one with a space before it (PEP 508). */
function splitMarker(rest: string): { head: string; marker: string } {
  const at = rest.trimStart().startsWith('@') ? rest.search(/\s;/) : rest.indexOf(';');
  if (at < 0) return { head: rest, marker: '' };
  return { head: rest.slice(0, at), marker: rest.slice(at).replace(/^\s?;/, '') };
}

function tidySpecifier(head: string): string | null {
  const text = head.trim();
  const bare = text.startsWith('(') && text.endsWith(')') ? text.slice(1, -1) : text;
  if (bare.trimStart().startsWith('@')) return bare.trim();
  return bare.replace(/\s+/g, '') || null;
}

/** Removes `extra == "x"` when the whole condition depends on it. A marker with `or` or `not` at the top level stays unchanged. */
function readMarker(text: string): { extra: string | null; marker: string | null } {
  const marker = text.trim();
  const parts = splitAtAnd(marker);
  const extras = (parts ?? []).map(extraOf);
  const [extra, ...others] = extras.filter((name) => name !== null);
  if (!parts || extra === undefined || others.length > 0) return { extra: null, marker: marker || null };
  const rest = parts.filter((_, at) => extras[at] === null);
  const [only] = rest;
  return { extra, marker: (rest.length === 1 && only ? unwrap(only) : rest.join(' and ')) || null };
}

function extraOf(part: string): string | null {
  const match =
    /^extra\s*==\s*(["'])([^"']+)\1$/.exec(unwrap(part)) ?? /^(["'])([^"']+)\1\s*==\s*extra$/.exec(unwrap(part));
  return match?.[2] ?? null;
}

/** The parts of a top-level conjunction. Null when the top level has an `or`, or when brackets do not match. */
function splitAtAnd(marker: string): string[] | null {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (const token of marker.matchAll(/"[^"]*"|'[^']*'|[()]|\b(?:and|or)\b/g)) {
    if (token[0] === '(') depth += 1;
    else if (token[0] === ')') depth -= 1;
    else if (depth === 0 && token[0] === 'or') return null;
    else if (depth === 0 && token[0] === 'and') {
      parts.push(marker.slice(from, token.index).trim());
      from = token.index + token[0].length;
    }
    if (depth < 0) return null;
  }
  return depth === 0 ? [...parts, marker.slice(from).trim()] : null;
}

/** Without a pair of brackets around the whole. */
function unwrap(part: string): string {
  if (!part.startsWith('(') || !part.endsWith(')')) return part;
  let depth = 0;
  for (const token of part.matchAll(/"[^"]*"|'[^']*'|[()]/g)) {
    if (token[0] === '(') depth += 1;
    else if (token[0] === ')') depth -= 1;
    if (depth === 0 && token.index < part.length - 1) return part;
  }
  return part.slice(1, -1).trim();
}
