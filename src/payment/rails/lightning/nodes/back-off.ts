/** Computes waits that double from `firstMs` to `longestMs`, until a success resets them. */
export function createBackOff(firstMs: number, longestMs: number) {
  let failures = 0;
  return {
    /** How long to wait after one more failure, in milliseconds. */
    failed(): number {
      const waitMs = Math.min(longestMs, firstMs * 2 ** failures);
      failures += 1;
      return waitMs;
    },
    succeeded(): void {
      failures = 0;
    },
  };
}
