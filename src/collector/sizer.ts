/** How much to ask for at once, learnt from how it goes. */
export interface Sizer {
  readonly size: number;
  grow(): void;
  /** False when it is as small as it can be. */
  shrink(): boolean;
}

/** Halves on trouble (a time-out, a refused span), doubles on success, between 1 and `max`; starts at `start`. */
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
