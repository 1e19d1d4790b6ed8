import type { Sketch } from './sketch.ts';

const QUIET = { identifier: null, abandonMs: null, viaTools: false } as const;
/** As most buyers sign. */
export const VALID = { validFor: 600, validSince: 600 } as const;

/** Who presents, from where and to whom: the same throughout a motif. */
export function presenter(sketch: Sketch) {
  return { ...QUIET, from: sketch.client(), at: sketch.random.pick(sketch.instances) };
}
