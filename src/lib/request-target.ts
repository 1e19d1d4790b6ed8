/** Path and query of a raw request target, byte for byte; an absolute-form target is reduced to them. Null when it has no path. */
export function pathAndQuery(target: string): string | null {
  const start = target.startsWith('/') ? 0 : target.indexOf('/', target.indexOf('//') + 2);
  return start < 0 ? null : target.slice(start);
}
