import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { Counter, collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { isForwarded, isLoopback } from '../lib/limits/client.ts';
import { LATENCY_BOUNDS, type RouteCounts } from './request-counts.ts';

/**
 * A new registry with Node's default metrics, which all registries of the process share. The service's own metrics are in its registry only, so two services
 * in one process do not collide. Each reading of one registry begins the time anew over which the event loop's lag is measured.
 */
export function createMetrics(): Registry {
  return Registry.merge([processRegistry()]);
}

let ofProcess: Registry | null = null;

/** Node's default metrics, collected once in a process: each `collectDefaultMetrics` starts a timer and an observer, and the library cannot stop them. */
function processRegistry(): Registry {
  if (!ofProcess) {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    ofProcess = registry;
  }
  return ofProcess;
}

/** Publishes the routes' counters. They are read when the metrics are requested, and cost nothing before. */
export function publishCounts(registry: Registry, routes: ReadonlyMap<string, RouteCounts>): void {
  new Counter({
    name: 'http_requests_total',
    help: 'Answers by route pattern, method and status',
    labelNames: ['route', 'method', 'status'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [route, { answers }] of routes) {
        for (const [method, byStatus] of answers) {
          for (const [status, count] of byStatus) this.inc({ route, method, status }, count);
        }
      }
    },
  });
  const name = 'http_request_duration_seconds';
  const help = 'Time from the request to the first byte of its answer, by route pattern';
  const get = async () => ({ name, help, type: 'histogram', aggregator: 'sum', values: latencyValues(name, routes) });
  // The library's Histogram cannot be filled from counts. The registry only needs a name and `get`.
  registry.registerMetric({ name, help, get } as unknown as Metric<string>);
}

function latencyValues(name: string, routes: ReadonlyMap<string, RouteCounts>) {
  return [...routes].flatMap(([route, { latency }]) => {
    let total = 0;
    const buckets = latency.buckets.map((count, at) => {
      total += count;
      const labels = { route, le: LATENCY_BOUNDS[at] ?? '+Inf' };
      return { metricName: `${name}_bucket`, labels, value: total };
    });
    if (total === 0) return [];
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels: { route }, value: latency.sum },
      { metricName: `${name}_count`, labels: { route }, value: latency.count },
    ];
  });
}

interface MetricsAccess {
  /** Who has this token may read the metrics, from anywhere, and nobody else. Null without a token. */
  readonly token: string | null;
  /** Whether the operator has named a proxy. */
  readonly hasProxy: boolean;
}

/** Names that always mean this machine. Any other name may be a stranger's that was pointed here (DNS rebinding). */
const LOOPBACK_NAME = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(:\d+)?$/i;

/**
 * Whether a request may read the metrics. With a token it must bring the token. Without one it must come from a program
 * on this machine:
 * 1. no proxy is configured and the request has no forwarding header, because a proxy on this machine connects from
 *    loopback too;
 * 2. the peer's address is of loopback;
 * 3. it asks under a name of loopback and has no Origin, because a web page in a browser on this machine connects from
 *    loopback too.
 */
export function mayReadMetrics(request: FastifyRequest, { token, hasProxy }: MetricsAccess): boolean {
  const { headers, socket } = request.raw;
  if (token !== null) {
    const given = /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1];
    return given !== undefined && timingSafeEqual(digest(given), digest(token));
  }
  if (hasProxy || isForwarded(headers) || !isLoopback(socket.remoteAddress)) return false;
  return headers.origin === undefined && LOOPBACK_NAME.test(headers.host ?? '');
}

/** Hashed first, because a comparison in constant time needs equal lengths. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
