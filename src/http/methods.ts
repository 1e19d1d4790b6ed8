import type { FastifyInstance, FastifyRequest } from 'fastify';
import createRouter, { type HTTPVersion, type Instance } from 'find-my-way';
import { AppError } from '../errors.ts';
import { ROUTER_OPTIONS } from './server-options.ts';

/** The pattern of a path and the methods that it answers, in the order in which they were mounted. */
interface Path {
  readonly url: string;
  readonly methods: string[];
}

/**
 * Watches the routes that are mounted from now on. Returns the refusal of a request that no route answers: 405 with `Allow` where its path answers other
 * methods, null where no route has its path. `onRefused` is told the pattern of the path.
 * The framework's router knows a path under its own methods only. So all patterns also stand in one tree of a second router with the same options, which is
 * made for the first such request. A route for each method that Node parses, 33 of them on each path, took a tenth of a start.
 */
export function createMethodRefusals(
  app: FastifyInstance,
  onRefused: (request: FastifyRequest, status: 405, route: string) => void,
): (request: FastifyRequest) => AppError | null {
  const paths = new Map<string, Path>();
  app.addHook('onRoute', ({ url, method }) => {
    // The guard of all requests answers OPTIONS, on every path.
    const methods = [method].flat().filter((name) => name !== 'OPTIONS');
    if (methods.length === 0) return;
    const path = paths.get(url) ?? { url, methods: [] };
    path.methods.push(...methods);
    paths.set(url, path);
  });
  let router: Instance<HTTPVersion.V1> | undefined;

  return (request) => {
    router ??= routerOf(paths.values());
    const path = router.find('GET', request.raw.url ?? '')?.store as Path | undefined;
    if (path === undefined) return null;
    onRefused(request, 405, path.url);
    const allow = [...path.methods, 'OPTIONS'].join(', ');
    const detail = `This path does not answer ${request.method}; it answers ${allow}.`;
    return new AppError(405, 'method_not_allowed', detail, { headers: { allow } });
  };
}

/** A tree of the paths, whatever their methods. */
function routerOf(paths: Iterable<Path>): Instance<HTTPVersion.V1> {
  const router = createRouter(ROUTER_OPTIONS);
  for (const path of paths) router.on('GET', path.url, () => {}, path);
  return router;
}
