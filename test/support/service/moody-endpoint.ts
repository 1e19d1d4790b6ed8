import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../../../src/catalogue/endpoint.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { type AppError, UpstreamFailed } from '../../../src/errors.ts';

/** A priced endpoint that fails when the test says so. It counts its runs, and each answer names its run. */
export function moodyEndpoint(path: `/${string}` = '/test/moody', priceUsd = '0.0005') {
  let runs = 0;
  let running = 0;
  let most = 0;
  let failure: AppError | null = null;
  let failures = 0;
  let slowMs = 0;
  const endpoint: Endpoint<Sources> = defineEndpoint({
    path,
    access: 'paid',
    priceUsd,
    label: 'Moody',
    summary: 'Answers unless the test says otherwise.',
    notFor: null,
    tags: '',
    ofChain: false,
    params: z.object({ tag: z.string().max(40).default('none') }),
    result: z.strictObject({ tag: z.string(), run: z.number() }),
    example: { params: {}, result: { tag: 'none', run: 1 } },
    async run({ tag }: { tag: string }) {
      const run = ++runs;
      running += 1;
      most = Math.max(most, running);
      try {
        if (slowMs > 0) await new Promise((done) => setTimeout(done, slowMs));
        if (failure && failures > 0) {
          failures -= 1;
          throw failure;
        }
        return { tag, run };
      } finally {
        running -= 1;
      }
    },
  });
  return {
    endpoint,
    path: `/v1/lightning${path}`,
    runs: () => runs,
    /** The most runs that were in progress together since the last call. */
    mostAtOnce: () => {
      const seen = most;
      most = running;
      return seen;
    },
    /** The next `times` runs throw. */
    fail: (error: AppError = new UpstreamFailed('test', 'moody'), times = Number.POSITIVE_INFINITY) => {
      failure = error;
      failures = times;
    },
    recover: () => {
      failures = 0;
    },
    slow: (ms: number) => {
      slowMs = ms;
    },
  };
}
