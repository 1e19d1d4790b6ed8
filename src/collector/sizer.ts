/** The size of a request, adapted to successes and failures. */
export interface Sizer {
  readonly size: number;
  grow(): void;
  /** Returns false when the size is 1 already. */
  shrink(): boolean;
}

/** A size between 1 and `max` that begins at `start`. `shrink` halves it after a failure (a time-out, a refused span), `grow` doubles it after a success. */
export function createSizer(max: number, start: number = max): Sizer {
  let size = Math.min(start, max);
  return {
    get size() {
      return size;
    },
    grow() {
      size = Math.min(max, size * 2);
    },
    shrink() {
      const small = size === 1;
      size = Math.max(1, Math.floor(size / 2));
      return !small;
    },
  };
}
