import { createServer, type ServerResponse } from 'node:http';
import { openNodeLink } from './node-link.ts';

/** One JSON-RPC call on its way to the node. */
export interface ProxiedCall {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

/**
 * The fault of a call. `drop`: it never arrives and is never answered; `deaf`: it arrives, but its answer does not; `garbage`: the body is not JSON-RPC;
 * `http`: a status instead of an answer; `delayMs`: as usual, but later. These faults apply to the whole request.
 * `result` and `error` answer one call instead of the node.
 */
export type Fate =
  | 'pass'
  | 'drop'
  | 'deaf'
  | { garbage: string }
  | { http: number }
  | { delayMs: number }
  | { result: unknown }
  | { error: { code: number; message: string } };

/** Decides the fault of every call, and may run code before the node gets the call and after it has answered. */
export interface Mischief {
  fate?(call: ProxiedCall): Fate;
  before?(call: ProxiedCall): Promise<void>;
  after?(call: ProxiedCall): Promise<void>;
}

type Reply = Record<string, unknown>;

/** A JSON-RPC proxy in front of a real node. A test decides the faults of calls, and can close the proxy for a while. */
export async function startFaultProxy(target: string) {
  let mischief: Mischief = {};
  const node = openNodeLink(target);

  async function forward(calls: readonly ProxiedCall[]): Promise<Reply[]> {
    if (calls.length === 0) return [];
    const body = JSON.stringify(calls.map(({ id, method, params }) => ({ jsonrpc: '2.0', id, method, params })));
    return JSON.parse(await node.post(body)) as Reply[];
  }

  async function serve(body: string, response: ServerResponse): Promise<void> {
    const calls = [JSON.parse(body)].flat() as ProxiedCall[];
    const { fate, before, after } = mischief;
    const fates = calls.map((call) => fate?.(call) ?? 'pass');
    const whole = fates.find((one) => isOfTheRequest(one));
    if (whole === 'drop') return;
    if (typeof whole === 'object' && 'http' in whole) return void response.writeHead(whole.http).end('no');
    const passed = calls.filter((_, at) => isThePass(fates[at]));
    for (const call of passed) await before?.(call);
    const byId = new Map((await forward(passed)).map((reply) => [reply.id, reply]));
    for (const call of passed) await after?.(call);
    if (whole === 'deaf') return;
    const replies = calls.map((call, at) => {
      const own = fates[at];
      return typeof own === 'object' && ('result' in own || 'error' in own)
        ? { jsonrpc: '2.0', id: call.id, ...own }
        : byId.get(call.id);
    });
    if (typeof whole === 'object' && 'delayMs' in whole) await new Promise((next) => setTimeout(next, whole.delayMs));
    const text = JSON.stringify(body.startsWith('[') ? replies : replies[0]);
    response.setHeader('content-type', 'application/json');
    response.end(typeof whole === 'object' && 'garbage' in whole ? whole.garbage : text);
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      serve(Buffer.concat(chunks).toString('utf8'), response).catch(() => response.destroy());
    });
  });
  const listen = (port: number) => new Promise<void>((ready) => server.listen(port, '127.0.0.1', ready));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  };
  await listen(0);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    /** From now on; an empty one lets everything through. */
    play: (next: Mischief): void => {
      mischief = next;
    },
    /** Refuses connections for a while, as during a restart of the node. */
    away: async (ms: number): Promise<void> => {
      await close();
      await new Promise((next) => setTimeout(next, ms));
      await listen(port);
    },
    stop: async (): Promise<void> => {
      await close();
      await node.close();
    },
  };
}

export type FaultProxy = Awaited<ReturnType<typeof startFaultProxy>>;

function isOfTheRequest(fate: Fate): boolean {
  return fate !== 'pass' && !(typeof fate === 'object' && ('result' in fate || 'error' in fate));
}

/** Whether the node gets to see a call. */
function isThePass(fate: Fate | undefined): boolean {
  return fate !== undefined && !(typeof fate === 'object' && ('result' in fate || 'error' in fate));
}
