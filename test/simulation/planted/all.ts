import type { Plant } from './plant.ts';

/** Every planted fault. */
export const PLANTED: readonly Plant[] = [];
