import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A chain's node with an added delay in milliseconds. */
export interface SlowChain {
  readonly url: string;
  slow(waitMs: () => number): void;
  stop(): Promise<void>;
}

/** A proxy in front of a JSON-RPC node that only delays answers, so that a test can kill the service while a handler runs. */
export async function startSlowChain(target: string): Promise<SlowChain> {
  let waitMs = () => 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    await delay(waitMs());
    const headers = { 'content-type': 'application/json' };
    try {
      const answer = await fetch(target, { method: 'POST', body: Buffer.concat(chunks), headers });
      response.writeHead(answer.status, headers).end(Buffer.from(await answer.arrayBuffer()));
    } catch {
      // A node that has gone meanwhile takes the connection along.
      response.destroy();
    }
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    slow: (next) => {
      waitMs = next;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
