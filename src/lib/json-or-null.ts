/** Parses bytes of UTF-8 as JSON. Null when they are not JSON. */
export function jsonOrNull(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
  } catch {
    return null;
  }
}
