import type { RouteOptions } from 'fastify';

/**
 * Throws when a route below a priced prefix that answers one of `methods` is not registered by its gate, or when an expected path is not mounted.
 * So the service does not start with an unprotected route.
 */
export function assertGated(
  prefix: string,
  methods: readonly string[],
  routes: readonly RouteOptions[],
  isGuarded: (route: RouteOptions) => boolean,
  expected: readonly string[],
): void {
  const gated = new Set<string>();
  for (const route of routes) {
    const answered = [route.method].flat();
    const serves = answered.some((method) => methods.includes(method));
    if (!serves || !route.url.toLowerCase().startsWith(`${prefix}/`)) continue;
    if (!isGuarded(route)) throw new Error(`${answered.join(',')} ${route.url} is below ${prefix} and has no gate`);
    gated.add(route.url);
  }
  for (const url of expected) {
    if (!gated.has(url)) throw new Error(`${url} is priced and not mounted`);
  }
}
