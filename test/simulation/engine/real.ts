import timers from 'node:timers';

/** Node's own, kept before virtual time takes their places. */
export const real = { ...timers, now: performance.now.bind(performance) };
