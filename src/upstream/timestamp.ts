/** RFC 3339, as npm, PyPI and OSV write times. */
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** Whole Unix seconds of an RFC 3339 time, or null when it is none or lies before 1970. */
export function secondsOf(text: unknown): number | null {
  if (typeof text !== 'string' || !RFC3339.test(text)) return null;
  const ms = Date.parse(text);
  return ms >= 0 ? Math.floor(ms / 1000) : null;
}
