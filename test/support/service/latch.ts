import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../../../src/catalogue/endpoint.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';

/** For services that sell a latched endpoint: its handlers run as long as the test takes, and the default of 15 s would end them at a pause. */
export const HANDLERS_WAIT = { HANDLER_TIMEOUT_MS: '120000' };

/** A priced endpoint whose handlers wait until the test releases them, so that the test controls what happens while a handler runs. */
export function latchedEndpoint(path: `/${string}` = '/test/latch', priceUsd = '0.001') {
  let runs = 0;
  let opened = true;
  let waiting: (() => void)[] = [];
  const arrived: (() => void)[] = [];
  const endpoint: Endpoint<Sources> = defineEndpoint({
    path,
    access: 'paid',
    priceUsd,
    label: 'Latch',
    summary: 'Answers when the test lets it.',
    notFor: null,
    tags: '',
    ofChain: false,
    params: z.object({ tag: z.string().default('none') }),
    result: z.object({ tag: z.string(), run: z.number() }),
    example: { params: {}, result: { tag: 'none', run: 1 } },
    run: async ({ tag }: { tag: string }) => {
      const run = ++runs;
      for (const tell of arrived.splice(0)) tell();
      if (!opened) await new Promise<void>((go) => waiting.push(go));
      return { tag, run };
    },
  });
  return {
    endpoint,
    path: `/v1/paid${path}`,
    runs: () => runs,
    /** The number of waiting handlers. */
    waiting: () => waiting.length,
    /** From now on handlers wait. */
    close: () => {
      opened = false;
    },
    /** Releases all handlers, now and later. */
    open: () => {
      opened = true;
      const gone = waiting;
      waiting = [];
      for (const go of gone) go();
    },
    /** Resolves when the next handler has started. */
    started: () => new Promise<void>((tell) => arrived.push(tell)),
  };
}
