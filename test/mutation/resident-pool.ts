import type { Vite } from 'vitest/node';
import { createResidentWorker } from './resident-worker.ts';

/** Stryker names the pool itself; this puts the worker that outlives its run in the place of the named one. */
export const residentPool: Vite.Plugin = {
  name: 'resident-pool',
  configureVitest({ project }) {
    project.config.pool = 'resident';
    project.config.poolRunner = { name: 'resident', createPoolWorker: createResidentWorker };
  },
};
