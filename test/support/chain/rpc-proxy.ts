import { createServer, type ServerResponse } from 'node:http';
import { openNodeLink } from './node-link.ts';

/** `drop`: the call never arrives and is never answered; `deaf`: it arrives, the answer does not; `refuse`: an error of its own. */
export type Fault = 'drop' | 'deaf' | 'refuse';

/** One call as it passes; `index` is its place in its batch. */
export interface Call {
  id: number;
  method: string;
  params: unknown[];
  index: number;
}

/** An answer of the proxy's own, or undefined to let the call through. */
export type Rule = (call: Call) => { result: unknown } | { error: { code: number; message: string } } | undefined;

/** A JSON-RPC proxy in front of a real node, with faults by method (`*` is any) and answers by rule. */
export async function startRpcProxy(target: string) {
  let faults: Record<string, Fault> = {};
  let rule: Rule = () => undefined;
  const node = openNodeLink(target);

  async function answer(calls: Call[]): Promise<object[]> {
    const own = calls.map((call) => rule(call));
    const passed = calls.filter((_, index) => own[index] === undefined);
    const forward = JSON.stringify(passed.map(({ id, method, params }) => ({ jsonrpc: '2.0', id, method, params })));
    const got = passed.length > 0 ? JSON.parse(await node.post(forward)) : [];
    const byId = new Map((got as { id: number }[]).map((reply) => [reply.id, reply]));
    return calls.map((call, index) => ({ jsonrpc: '2.0', id: call.id, ...(own[index] ?? byId.get(call.id)) }));
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    // A node that has gone meanwhile takes the connection along.
    request.on(
      'end',
      () => void serve(Buffer.concat(chunks).toString('utf8'), response).catch(() => response.destroy()),
    );
  });

  async function serve(body: string, response: ServerResponse): Promise<void> {
    const calls = ([JSON.parse(body)].flat() as Call[]).map((call, index) => ({ ...call, index }));
    const fault = calls.map(({ method }) => faults[method] ?? faults['*']).find(Boolean);
    if (fault === 'drop') return;
    const refusal = { error: { code: -32000, message: 'not today' } };
    const replies =
      fault === 'refuse' ? calls.map(({ id }) => ({ jsonrpc: '2.0', id, ...refusal })) : await answer(calls);
    if (fault === 'deaf') return;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(body.startsWith('[') ? replies : replies[0]));
  }
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    fault: (next: Record<string, Fault>) => {
      faults = next;
    },
    rule: (next: Rule) => {
      rule = next;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
      await node.close();
    },
  };
}

export type RpcProxy = Awaited<ReturnType<typeof startRpcProxy>>;
