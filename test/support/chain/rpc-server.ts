import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a handler may throw to answer with a JSON-RPC error. */
export class RpcFault extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** How a whole HTTP request may go wrong. */
export type Fault =
  | 'hang'
  | 'reset'
  | '500'
  | '429'
  | 'garbage'
  | 'no-json-rpc'
  | 'wrong-ids'
  | 'missing-entry'
  | 'object-for-batch'
  | 'too-large'
  | 'stalled-body';

interface RpcRequest {
  readonly id: number;
  readonly method: string;
  readonly params: unknown[];
}

type Method = (params: unknown[]) => unknown;

/** A JSON-RPC server on loopback whose every answer and fault the test decides. */
export interface RpcServer {
  readonly url: string;
  readonly port: number;
  /** Answers by method; eth_chainId says 5042 unless replaced. */
  readonly methods: Record<string, Method>;
  /** The fault of every request, or a function that picks the faulty ones; null for none. */
  fault: Fault | null | ((requests: readonly RpcRequest[]) => Fault | null);
  /** Parsed bodies as they came: an array is a batch. */
  readonly bodies: unknown[];
  readonly requests: { url: string; headers: IncomingMessage['headers'] }[];
  /** How often a method was asked for. */
  count(method: string): number;
  stop(): Promise<void>;
}

/** 1 MB more than a client of ours reads. */
const TOO_LARGE_BYTES = 33 * 1024 * 1024;

export async function startRpcServer(methods: Record<string, Method> = {}, port = 0): Promise<RpcServer> {
  const bodies: unknown[] = [];
  const requests: RpcServer['requests'] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text) as RpcRequest | RpcRequest[];
    bodies.push(body);
    requests.push({ url: request.url ?? '', headers: request.headers });
    const calls = Array.isArray(body) ? body : [body];
    const fault = typeof self.fault === 'function' ? self.fault(calls) : self.fault;
    if (fault !== null && breakAnswer(fault, calls, response)) return;
    const answers = calls.map((call) => answer(self.methods, call));
    send(response, 200, JSON.stringify(Array.isArray(body) ? answers : answers[0]));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const bound = (server.address() as AddressInfo).port;
  const self: RpcServer = {
    url: `http://127.0.0.1:${bound}`,
    port: bound,
    methods: { eth_chainId: () => '0x13b2', ...methods },
    fault: null,
    bodies,
    requests,
    count: (method) => bodies.flat().filter((call) => (call as RpcRequest).method === method).length,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return self;
}

function answer(methods: Record<string, Method>, { id, method, params }: RpcRequest) {
  const run = methods[method];
  if (!run) return { jsonrpc: '2.0', id, error: { code: -32601, message: 'method not supported' } };
  try {
    return { jsonrpc: '2.0', id, result: run(params) };
  } catch (error) {
    if (!(error instanceof RpcFault)) throw error;
    return { jsonrpc: '2.0', id, error: { code: error.code, message: error.message, data: error.data } };
  }
}

/** True when the fault has taken care of the response. */
function breakAnswer(fault: Fault, calls: readonly RpcRequest[], response: ServerResponse): boolean {
  const results = calls.map(({ id }) => ({ jsonrpc: '2.0', id, result: '0x1' }));
  switch (fault) {
    case 'hang':
      return true;
    case 'reset':
      response.socket?.destroy();
      return true;
    case '500':
    case '429':
      send(response, Number(fault), JSON.stringify(results[0]));
      return true;
    case 'garbage':
      send(response, 200, '<html>come back later</html>');
      return true;
    case 'no-json-rpc':
      send(response, 200, '{"message":"ok"}');
      return true;
    case 'wrong-ids':
      send(
        response,
        200,
        JSON.stringify(
          shape(
            calls,
            results.map((entry) => ({ ...entry, id: entry.id + 1000 })),
          ),
        ),
      );
      return true;
    case 'missing-entry':
      send(response, 200, JSON.stringify(results.slice(1)));
      return true;
    case 'object-for-batch':
      send(response, 200, '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches"}}');
      return true;
    case 'too-large':
      response.writeHead(200, { 'content-type': 'application/json' }).end(Buffer.alloc(TOO_LARGE_BYTES, '0'));
      return true;
    case 'stalled-body':
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"jsonrpc"');
      return true;
  }
}

function shape(calls: readonly RpcRequest[], entries: readonly unknown[]): unknown {
  return calls.length === 1 ? entries[0] : entries;
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}
