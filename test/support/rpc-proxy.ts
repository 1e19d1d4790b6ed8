import { createServer } from 'node:http';

/** `drop`: the call never arrives and is never answered; `deaf`: it arrives, the answer does not; `refuse`: an error of its own. */
export type Fault = 'drop' | 'deaf' | 'refuse';

interface Call {
  id: number;
  method: string;
}

/** A JSON-RPC proxy in front of a real node, with faults by method (`*` is any). */
export async function startRpcProxy(target: string) {
  let faults: Record<string, Fault> = {};
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', async () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const calls = [JSON.parse(body)].flat() as Call[];
      const fault = calls.map(({ method }) => faults[method] ?? faults['*']).find(Boolean);
      if (fault === 'drop') return;
      if (fault === 'refuse') {
        const refusals = calls.map(({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32000, message: 'not today' } }));
        response.end(JSON.stringify(body.startsWith('[') ? refusals : refusals[0]));
        return;
      }
      const answer = await fetch(target, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
      const text = await answer.text();
      if (fault !== 'deaf') response.setHeader('content-type', 'application/json').end(text);
    });
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    fault: (next: Record<string, Fault>) => {
      faults = next;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

export type RpcProxy = Awaited<ReturnType<typeof startRpcProxy>>;
