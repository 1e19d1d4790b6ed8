/** One challenge of a WWW-Authenticate header. Names are in lower case, values as they were sent. */
export interface AuthChallenge {
  readonly scheme: string;
  readonly params: ReadonlyMap<string, string>;
}

/** Node refuses headers of more than 16 KiB. A longer text does not come from a response. */
const MAX_CHARACTERS = 65_536;
const TOKEN = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y;
const EQUALS = /[ \t]*=[ \t]*(?=[^\s,=])/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/y;
/** Values without quotes: RFC 9110 allows a token. Sellers also send bare base64. */
const BARE = /[^\s,"]+/y;
/** A scheme may be followed by one such value in place of parameters, as `Negotiate` is. */
const TOKEN68 = /[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))/y;
const GAP = /[\s,]*/y;

/**
 * Reads the challenges of a WWW-Authenticate header, whose lines the client has joined by commas (RFC 9110). Reading ends at the first text that is not of
 * that form. The challenge that contains such text, or names a parameter twice, is left out: it could mean two things. Never throws.
 */
export function readAuthChallenges(header: string): AuthChallenge[] {
  const text = header.slice(0, MAX_CHARACTERS);
  const found: { scheme: string; params: Map<string, string>; isSound: boolean }[] = [];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match) at = pattern.lastIndex;
    return match;
  };
  for (take(GAP); at < text.length; take(GAP)) {
    const current = found.at(-1);
    const name = take(TOKEN)?.[0].toLowerCase();
    if (name === undefined) {
      if (current) current.isSound = false;
      break;
    }
    if (!take(EQUALS)) {
      found.push({ scheme: name, params: new Map(), isSound: true });
      take(/[ \t]+/y);
      take(TOKEN68);
      continue;
    }
    const value = take(QUOTED)?.[1]?.replaceAll(/\\(.)/g, '$1') ?? take(BARE)?.[0];
    if (!current) break;
    if (value === undefined || current.params.has(name)) current.isSound = false;
    if (value === undefined) break;
    current.params.set(name, value);
  }
  return found.filter(({ isSound }) => isSound).map(({ scheme, params }) => ({ scheme, params }));
}
