import { WOULD_BE_REFUSED } from '../../src/payment/protocol.ts';

/** The longest body that is parsed, in characters. */
const MAX_BODY = 4096;

/** The values of `charged` as words. */
const SAID = new Map<unknown, string>([
  [false, 'not charged'],
  [true, 'charged'],
  ['unknown', 'unknown whether it is charged'],
]);

/** The reason in a failed answer's body: RFC 9457's `detail`, with what the seller says in `charged`. Null for anything else. */
export function problemDetail(body: string): string | null {
  if (body.length > MAX_BODY) return null;
  try {
    const { detail, charged } = JSON.parse(body) as { detail?: unknown; charged?: unknown };
    if (typeof detail !== 'string') return null;
    const said = SAID.get(charged);
    return said === undefined ? detail : `${detail} (the seller says: ${said})`;
  } catch {
    return null;
  }
}

/** The hint of a 402 which says that the paid request would be a 400, as percall's do. Null for any other body. */
export function foreseenRefusal(body: string): string | null {
  if (body.length > MAX_BODY) return null;
  try {
    const { hint, detail } = JSON.parse(body) as { hint?: unknown; detail?: unknown };
    const said = [hint, detail].find((text) => typeof text === 'string' && text.includes(WOULD_BE_REFUSED));
    return (said as string | undefined) ?? null;
  } catch {
    return null;
  }
}
