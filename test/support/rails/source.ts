import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../../../src/catalogue/endpoint.ts';
import { UpstreamFailed } from '../../../src/errors.ts';
import { startStandIn } from '../upstream/http-stand-in.ts';

/** What the two endpoints cost. */
export const PRICES = { cheap: '0.0005', dear: '0.0032' } as const;

/** The upstream of the endpoints. It runs in the test, so that it counts their runs across the kills of the service that sells them. */
export async function startSource() {
  const runs = new Map<string, number>();
  const failing = new Set<string>();
  const held = new Map<string, { arrived: PromiseWithResolvers<void>; open: PromiseWithResolvers<void> }>();
  const release = (tag: string): void => {
    held.get(tag)?.open.resolve();
    held.delete(tag);
  };
  const server = await startStandIn(async ({ query }) => {
    const tag = String(query.get('tag'));
    const run = (runs.get(tag) ?? 0) + 1;
    runs.set(tag, run);
    held.get(tag)?.arrived.resolve();
    await held.get(tag)?.open.promise;
    return failing.has(tag) ? { status: 500, json: {} } : { json: { tag, run } };
  });
  return {
    url: server.url,
    /** How often the handler ran for a tag. */
    runs: (tag: string): number => runs.get(tag) ?? 0,
    fail: (tag: string) => void failing.add(tag),
    recover: (tag: string) => void failing.delete(tag),
    /** Runs for a tag wait until they are released. */
    hold: (tag: string) => {
      const gate = { arrived: Promise.withResolvers<void>(), open: Promise.withResolvers<void>() };
      held.set(tag, gate);
      const early = (answer: unknown): never => {
        throw new Error(`answered before its handler ran: ${JSON.stringify(answer)}`);
      };
      return {
        /** Resolves when the handler runs. Rejects when the presentation is answered before, because no handler would come. */
        arrivedFrom: (answer: Promise<unknown>): Promise<void> =>
          Promise.race([gate.arrived.promise, answer.then(early)]),
        release: () => release(tag),
      };
    },
    releaseAll: () => {
      for (const tag of [...held.keys()]) release(tag);
    },
    stop: server.stop,
  };
}

/** Two priced endpoints over the source at this URL. Each answer says which run made it. */
export function sourcedEndpoints<S>(url: string): Endpoint<S>[] {
  return Object.entries(PRICES).map(([name, priceUsd]) =>
    defineEndpoint({
      path: `/test/${name}`,
      access: 'paid',
      priceUsd,
      label: 'Sourced',
      summary: 'Answers as the source of the test does.',
      notFor: null,
      tags: '',
      ofChain: false,
      params: z.object({ tag: z.string().max(40) }),
      result: z.strictObject({ tag: z.string(), run: z.number() }),
      example: { params: { tag: 'a' }, result: { tag: 'a', run: 1 } },
      run: async ({ tag }: { tag: string }, _sources: S, signal) => {
        const answer = await fetch(`${url}/?tag=${tag}`, { signal });
        if (!answer.ok) throw new UpstreamFailed('source', `status ${answer.status}`);
        return (await answer.json()) as { tag: string; run: number };
      },
    }),
  );
}
