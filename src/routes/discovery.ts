import type { FastifyInstance } from 'fastify';
import { parseParams, type Query } from '../catalogue/params.ts';
import type { Discovery } from '../discovery/discovery.ts';
import { type SearchParams, searchParams } from '../discovery/search-params.ts';
import { refuseOtherMethods } from '../http/methods.ts';

/** Mounts the search: free, strict about its own parameters, and like every free route deaf to others. */
export function mountDiscovery(app: FastifyInstance, discovery: Pick<Discovery, 'search'>): void {
  const url = '/v1/market/search';
  app.route({
    method: ['GET', 'HEAD'],
    url,
    handler: async (request, reply) => {
      const params = parseParams({ params: searchParams }, request.query as Query, false) as SearchParams;
      // Of this moment: `online` is.
      return reply.header('cache-control', 'no-store').send(await discovery.search(params));
    },
  });
  refuseOtherMethods(app, url, ['GET', 'HEAD']);
}
