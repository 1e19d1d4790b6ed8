/** Longer bodies are no problem documents worth a line. */
const MAX_BODY = 4096;

/** What a seller says of a failed call in its body: RFC 9457's `detail`, with `charged` where it tells. Null for anything else. */
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
