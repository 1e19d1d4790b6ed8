import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NotFound } from '../errors.ts';
import type { Encoded } from '../http/encodings.ts';
import { findAsset } from './assets.ts';
import { sendAsset, sendPage } from './send.ts';

const METHODS = ['GET', 'HEAD'];

/** Mounts a page for GET and HEAD. `make` may set a status. An error in `make` is answered with a problem, like on any other route. */
export function mountPage(
  app: FastifyInstance,
  url: string,
  make: (request: FastifyRequest, reply: FastifyReply) => Promise<string | Encoded> | string | Encoded,
): void {
  app.route({
    method: METHODS,
    url,
    handler: async (request, reply) => {
      sendPage(request, reply, await make(request, reply));
      return reply;
    },
  });
  if (url === '/') return;
  // People type the slash, and other pages link with it.
  app.route({
    method: METHODS,
    url: `${url}/`,
    handler: (request, reply) => reply.redirect(`${url}${queryOf(request.raw.url ?? '')}`, 308),
  });
}

function queryOf(target: string): string {
  const at = target.indexOf('?');
  return at < 0 ? '' : target.slice(at);
}

/** Mounts every asset of the pages. */
export function mountAssets(app: FastifyInstance): void {
  const url = '/assets/:file';
  app.route<{ Params: { file: string } }>({
    method: METHODS,
    url,
    handler: async (request, reply) => {
      const asset = await findAsset(`/assets/${request.params.file}`);
      if (asset === undefined) throw new NotFound('There is no such asset; a page names those that are.');
      sendAsset(request, reply, asset);
      return reply;
    },
  });
}
