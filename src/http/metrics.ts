import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest, onSendHookHandler } from 'fastify';
import type { Logger } from 'pino';
import { Counter, collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { isForwarded, isLoopback } from '../lib/limits/count.ts';
import { pathOf } from './problems.ts';

// The metrics of a service, and who may read them. Every answer is logged, and counted under its route as plain
// numbers, which become metrics when these are requested.

/**
 * Two services in one process do not collide: only Node's default metrics are shared. Each reading of one registry
 * begins anew the time over which the event loop's lag is measured.
 */
export function createMetrics(): Registry {
  return Registry.merge([processRegistry()]);
}

/** Once: each `collectDefaultMetrics` starts a timer and an observer, which the library cannot stop. */
let ofProcess: Registry | null = null;

function processRegistry(): Registry {
  if (ofProcess) return ofProcess;
  ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess });
  return ofProcess;
}

const UNMATCHED = 'unmatched';

/**
 * Counts and logs answers of routes mounted afterwards, by pattern, without queries or headers, in each route's last
 * onSend hook: an onResponse hook would cost 8 % of a bare request, two listeners on every response. A settled sale and
 * every 5xx are logged at `info`, the rest at `debug`.
 */
export function observeRequests(app: FastifyInstance, log: Logger, registry: Registry) {
  const routes = new Map<string, RouteCounts>();
  publishCounts(registry, routes);

  function countsOf(route: string): RouteCounts {
    const counts = routes.get(route) ?? createRouteCounts();
    routes.set(route, counts);
    return counts;
  }

  function logAnswer(request: FastifyRequest, route: string, status: number, milliseconds: number, sold: boolean) {
    if (!sold && status < 500 && !log.isLevelEnabled('debug')) return;
    const { method, url = '' } = request.raw;
    const path = pathOf(url);
    const line = { requestId: request.id, method, route, path, status, milliseconds: Math.round(milliseconds) };
    if (sold || status >= 500) log.info(line, sold ? 'sold' : 'failed');
    else log.debug(line, 'answered');
  }

  function observer(route: string): onSendHookHandler {
    const counts = countsOf(route);
    return (request, reply, payload, done) => {
      const { statusCode } = reply.raw;
      const milliseconds = performance.now() - request.startedMs;
      counts.add(request.raw.method ?? '', statusCode, milliseconds / 1000);
      logAnswer(request, route, statusCode, milliseconds, isSold(reply));
      done(null, payload);
    };
  }

  app.addHook('onRoute', (route) => {
    route.onSend = [...[route.onSend ?? []].flat(), observer(route.url)];
  });

  return {
    unmatched(request: FastifyRequest, status: number, route = UNMATCHED): void {
      const milliseconds = performance.now() - request.startedMs;
      countsOf(route).add(request.raw.method ?? '', status, milliseconds / 1000);
      logAnswer(request, route, status, milliseconds, false);
    },
  };
}

function isSold(reply: FastifyReply): boolean {
  return reply.raw.statusCode === 200 && reply.hasHeader('payment-response');
}

/** Seconds: from a cached answer to a paid answer that waits for its settlement. */
const BUCKETS: readonly number[] = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

interface RouteCounts {
  add(method: string, status: number, seconds: number): void;
  readonly answers: ReadonlyMap<string, ReadonlyMap<number, number>>;
  readonly latency: { readonly buckets: readonly number[]; readonly sum: number; readonly count: number };
}

/** Adding costs two look-ups. A metric with labels would hash the labels for every request. */
function createRouteCounts(): RouteCounts {
  const answers = new Map<string, Map<number, number>>();
  const latency = { buckets: new Array<number>(BUCKETS.length + 1).fill(0), sum: 0, count: 0 };
  return {
    answers,
    latency,
    add(method, status, seconds) {
      let byStatus = answers.get(method);
      if (!byStatus) {
        byStatus = new Map();
        answers.set(method, byStatus);
      }
      byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
      let at = 0;
      while (at < BUCKETS.length && seconds > (BUCKETS[at] ?? 0)) at += 1;
      latency.buckets[at] = (latency.buckets[at] ?? 0) + 1;
      latency.sum += seconds;
      latency.count += 1;
    },
  };
}

/** The counters are read when the metrics are requested, and cost nothing before. */
function publishCounts(registry: Registry, routes: ReadonlyMap<string, RouteCounts>): void {
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
  // The library's Histogram cannot be filled from counts. The registry needs a name and `get`.
  registry.registerMetric({ name, help, get } as unknown as Metric<string>);
}

function latencyValues(name: string, routes: ReadonlyMap<string, RouteCounts>) {
  return [...routes].flatMap(([route, { latency }]) => {
    let total = 0;
    const buckets = latency.buckets.map((count, at) => {
      total += count;
      const labels = { route, le: BUCKETS[at] ?? '+Inf' };
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
  /** Who has this token may read the metrics, from anywhere, and nobody else. */
  readonly token: string | null;
  readonly hasProxy: boolean;
}

/** Any other name may be a stranger's that was pointed here (DNS rebinding). */
const LOOPBACK_NAME = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(:\d+)?$/i;

/**
 * Without a token a request must come from a program on this machine: from loopback and not through a proxy (none is
 * configured, no forwarding header), and from no browser's page (a name of loopback, no Origin).
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

/** A comparison in constant time needs equal lengths. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
