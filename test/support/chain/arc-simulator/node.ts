import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { RpcFault } from '../rpc-server.ts';
import type { SimChain } from './chain.ts';
import { type SimFault, spoil } from './faults.ts';
import { createMethods, type Method } from './methods.ts';

/** One simulated endpoint. */
export interface SimNodeOptions {
  readonly chain: SimChain;
  readonly nowMs: () => number;
  readonly chainId?: number;
  readonly hasBlockReceipts?: boolean;
  readonly hasFeeHistory?: boolean;
  /** HTTP requests a second and how many at once, above which it answers -32011; none by default. */
  readonly limit?: { perSecond: number; burst: number };
  /** What `foreignChain` answers from. */
  readonly foreign?: SimChain;
}

export interface SimNode {
  readonly url: string;
  /** Asked for each HTTP request. */
  fault: (calls: readonly Call[]) => SimFault | null;
  /** When set, each request goes unanswered. */
  down: boolean;
  /** Blocks below this are gone. */
  prunedBelow: number;
  /** When set, it reports no later block. */
  frozenAt: number | null;
  /** Methods that it refuses. */
  readonly refusing: Set<string>;
  /** When each HTTP request came, in the simulator's time. */
  readonly requestsMs: number[];
  /** How many of them were refused for the limit. */
  readonly refused: () => number;
  /** Calls by method. */
  readonly calls: Map<string, number>;
  stop(): Promise<void>;
}

interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: unknown[];
}

const MAX_BATCH = 100;
/** Blocks by which a stale answer lags. */
const STALE_BY = 7;

/** Starts an endpoint on loopback; several of them may serve one chain. */
export async function startSimNode(options: SimNodeOptions): Promise<SimNode> {
  const { chain, nowMs, limit } = options;
  let refused = 0;
  let tokens = limit?.burst ?? 0;
  let filledMs = nowMs();
  const methodsOf = (source: SimChain, lag: number): Record<string, Method> =>
    createMethods({
      chain: source,
      head: () => Math.max(0, Math.min(self.frozenAt ?? Number.POSITIVE_INFINITY, source.headAt(nowMs()) - lag)),
      chainId: options.chainId ?? 5042,
      hasBlockReceipts: options.hasBlockReceipts ?? true,
      hasFeeHistory: options.hasFeeHistory ?? true,
      prunedBelow: () => self.prunedBelow,
    });
  const well = methodsOf(chain, 0);
  const stale = methodsOf(chain, STALE_BY);
  const foreign = methodsOf(options.foreign ?? chain, 0);

  function admit(): boolean {
    if (!limit) return true;
    tokens = Math.min(limit.burst, tokens + ((nowMs() - filledMs) * limit.perSecond) / 1000);
    filledMs = nowMs();
    if (tokens < 1) {
      refused += 1;
      return false;
    }
    tokens -= 1;
    return true;
  }

  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text) as Call | Call[];
    const calls = [body].flat();
    self.requestsMs.push(nowMs());
    for (const { method } of calls) self.calls.set(method, (self.calls.get(method) ?? 0) + 1);
    const fault = self.down ? 'reset' : admit() ? self.fault(calls) : 'limited';
    if (fault !== null && breakRequest(fault, calls, response)) return;
    if (calls.length > MAX_BATCH)
      return send(response, 200, failure(null, -32600, `batch size ${calls.length} exceeds limit of 100`));
    const methods = fault === 'staleHead' ? stale : fault === 'foreignChain' ? foreign : well;
    const answers = calls.map((call) => {
      const answered = self.refusing.has(call.method) ? failure(call.id, -32000, 'refused') : answer(methods, call);
      return fault && 'result' in answered ? { ...answered, result: spoil(fault, call, answered.result) } : answered;
    });
    send(response, 200, Array.isArray(body) ? answers : answers[0]);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const self: SimNode = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fault: () => null,
    down: false,
    frozenAt: null,
    prunedBelow: 0,
    refusing: new Set(),
    requestsMs: [],
    refused: () => refused,
    calls: new Map(),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return self;
}

function answer(methods: Record<string, Method>, { id, method, params }: Call) {
  const run = methods[method];
  if (!run) return failure(id, -32601, 'method not supported');
  try {
    return { jsonrpc: '2.0', id, result: run(params) };
  } catch (error) {
    if (!(error instanceof RpcFault)) throw error;
    return failure(id, error.code, error.message);
  }
}

const failure = (id: number | null, code: number, message: string) => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
});

/** True when the fault has taken care of the response. */
function breakRequest(fault: SimFault, calls: readonly Call[], response: ServerResponse): boolean {
  switch (fault) {
    case 'hang':
      return true;
    case 'reset':
      response.socket?.destroy();
      return true;
    case 'http429':
      send(response, 429, { error: 'too many requests' });
      return true;
    case 'limited': {
      const refusals = calls.map(({ id }) => failure(id, -32011, 'request limit reached'));
      send(response, 200, calls.length === 1 ? refusals[0] : refusals);
      return true;
    }
    case 'garbage':
      response.writeHead(200).end('<html>come back later</html>');
      return true;
    case 'cutBatch':
      send(
        response,
        200,
        calls.slice(1).map(({ id }) => ({ jsonrpc: '2.0', id, result: null })),
      );
      return true;
    default:
      return false;
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
