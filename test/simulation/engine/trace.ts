import { createHash } from 'node:crypto';

/** Everything that happens, in order: hashed, so that two runs can be compared to the byte, and passed to each listener. */
export interface Trace {
  note(nowMs: number, who: string, what: string): void;
  /** Of all that was noted so far. */
  digest(): string;
}

/** Lines are hashed in pieces of this many characters: one call each would cost more than the hash. */
const PIECE = 16_384;

export function createTrace(startMs: number, listener: ((line: string) => void) | null = null): Trace {
  const hash = createHash('sha256');
  let piece = '';
  return {
    note(nowMs, who, what) {
      const line = `${nowMs - startMs} ${who} ${what}\n`;
      piece += line;
      if (piece.length > PIECE) {
        hash.update(piece);
        piece = '';
      }
      listener?.(line);
    },
    digest: () => hash.copy().update(piece).digest('hex'),
  };
}
