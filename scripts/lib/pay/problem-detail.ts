/** The longest body that is parsed, in characters. */
const MAX_BODY = 4096;

/** The reason in a failed answer's body: RFC 9457's `detail`, with `charged` when present. Null for anything else. */
export function problemDetail(body: string): string | null {
  if (body.length > MAX_BODY) return null;
  try {
    const { detail, charged } = JSON.parse(body) as { detail?: unknown; charged?: unknown };
    if (typeof detail !== 'string') return null;
    return charged === false ? `${detail} (not charged)` : detail;
  } catch {
    return null;
  }
}
