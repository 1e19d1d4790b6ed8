/** The source of time, which tests can replace. All times inside the service are Unix milliseconds. */
export interface Clock {
  nowMs(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The machine's clock. It uses plain timers, because Node's promise timers create an error with a stack for each aborted sleep. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', stop);
        resolve();
      }, ms);
      const stop = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', stop, { once: true });
    }),
};

/** The time in whole Unix seconds: the unit of the `…At` members of our answers. Inside the service, `…At` is in milliseconds. */
export function nowSeconds(clock: Clock): number {
  return Math.floor(clock.nowMs() / 1000);
}

/** Whole seconds since this Unix time, never negative: another machine's clock may be ahead of ours. */
export function secondsSince(at: number, clock: Clock): number {
  return Math.max(nowSeconds(clock) - at, 0);
}
