import type { FastifyInstance } from 'fastify';
import { parseParams, type Query } from '../catalogue/params.ts';
import type { Discovery } from '../discovery/discovery.ts';
import { type SearchParams, searchParams } from '../discovery/search.ts';

/** Mounts the search. It is free. It checks its own parameters strictly and, like every free route, ignores unknown ones. */
export function mountDiscovery(app: FastifyInstance, discovery: Pick<Discovery, 'search'>): void {
  const url = '/v1/market/search';
  app.route({
    method: ['GET', 'HEAD'],
    url,
    handler: async (request, reply) => {
      const params = parseParams({ params: searchParams }, request.query as Query) as SearchParams;
      // Not cached, because `online` holds only at this moment.
      return reply.header('cache-control', 'no-store').send(await discovery.search(params));
    },
  });
}
