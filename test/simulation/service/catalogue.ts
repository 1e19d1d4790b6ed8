import { z } from 'zod';
import type { Catalogue, LoadedService } from '../seam.ts';

/** Each run of a priced endpoint, so that no two answers are alike and what was worked for can be counted. */
export interface Run {
  readonly path: string;
  /** What the caller put into `tag`. */
  readonly tag: string;
  readonly run: number;
  readonly atMs: number;
  /** The newest block then. */
  readonly block: number;
}

interface CatalogueOptions {
  readonly service: Pick<LoadedService, 'catalogue' | 'defineEndpoint'>;
  readonly nowMs: () => number;
  readonly head: () => number;
}

/** A route of the simulated service. */
export interface Route {
  /** Below `/v1/paid`. */
  readonly path: string;
  /** USDC base units. */
  readonly price: bigint;
  readonly fails: boolean;
  /** With a `tag`, which tells runs apart. */
  readonly tagged: boolean;
  readonly onLightning: boolean;
  readonly query: string;
}

/** Real ones, taken as they are. */
const WALLET = '/chain/wallet';
const DNS = '/domains/dns';
const FAIL = '/selftest/fail';

/** How long the slow one takes. */
export const SLOW_MS = 9_000;

/** What is sold in the simulated world: little, so that a start is quick; each of its own answers is unlike any other. */
export function createCatalogue({ service, nowMs, head }: CatalogueOptions) {
  const runs: Run[] = [];
  let moody = false;

  const made = (path: `/${string}`, priceUsd: string, work: (signal: AbortSignal) => Promise<void>) =>
    service.defineEndpoint({
      path,
      access: 'paid',
      priceUsd,
      label: path,
      summary: `What ${path} sells.`,
      notFor: null,
      tags: '',
      ofChain: false,
      params: z.object({ tag: z.string().max(40).default('none') }),
      result: z.strictObject({ path: z.string(), tag: z.string(), run: z.number() }),
      example: { params: {}, result: { path, tag: 'none', run: 1 } },
      async run({ tag }: { tag: string }, _sources: object, signal: AbortSignal) {
        const run = runs.length;
        runs.push({ path, tag, run, atMs: nowMs(), block: head() });
        await work(signal);
        if (moody) throw new Error('the data are broken');
        return { path, tag, run };
      },
    });

  const nap = (ms: number) => (signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    });
  const own = [
    made('/sim/cheap', '0.0005', async () => {}),
    made('/sim/dear', '0.002', nap(20)),
    made('/sim/slow', '0.001', nap(SLOW_MS)),
  ];
  const real = service.catalogue.filter(({ path }) => [WALLET, DNS, FAIL].includes(path));
  if (real.length !== 3) throw new Error('the catalogue has not all of the real routes that are simulated');

  const queries: Record<string, string> = {
    [WALLET]: `address=0x${'12'.repeat(20)}`,
    [DNS]: 'name=example.com&type=A',
  };
  const routes: Route[] = [...own, ...real].map((endpoint) => ({
    path: endpoint.path,
    price: endpoint.price?.units ?? 0n,
    fails: endpoint.path === FAIL,
    tagged: endpoint.path.startsWith('/sim/'),
    onLightning: endpoint.onlyOn !== 'paid',
    query: queries[endpoint.path] ?? '',
  }));

  return {
    endpoints: [...own, ...real] as unknown as Catalogue,
    routes,
    runs: (): readonly Run[] => runs,
    /** From here on our own endpoints fail, or do not. */
    setMoody: (is: boolean) => {
      moody = is;
    },
  };
}
