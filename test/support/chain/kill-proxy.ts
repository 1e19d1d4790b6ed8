import { createServer, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { openNodeLink } from './node-link.ts';

/** One HTTP request of JSON-RPC as it passes; `results` are those of its calls, once the node has answered. */
export interface Exchange {
  readonly calls: readonly { readonly id: number; readonly method: string; readonly params: readonly unknown[] }[];
  readonly results: readonly unknown[];
}

/**
 * Where a request is stopped: `asked`, before the node gets it; `forwarded`, when the node has answered and the service does not know;
 * `answered`, when the answer is on its way to the service.
 */
export interface Stop {
  readonly stage: 'asked' | 'forwarded' | 'answered';
  matches(exchange: Exchange): boolean;
}

/** A stop that was set. */
export interface Standing {
  /** Resolves when the stop was reached; the request of an earlier stage than `answered` hangs there from then on. */
  readonly reached: Promise<void>;
  /** Whether it was reached, and the service still waits for what hangs. */
  holds(): boolean;
  /** Breaks the connection of the stopped request. This stop stops no more requests. */
  letGo(): void;
}

/**
 * A proxy between the service and its node that reports how far a request has come, so that a test knows the service's state from outside.
 * It passes everything unchanged, except for the one request that each of its stops has stopped.
 */
export async function startKillProxy(target: string) {
  type Meet = (stage: Stop['stage'], exchange: Exchange, response: ServerResponse) => boolean;
  const node = openNodeLink(target);
  const stops = new Set<Meet>();
  const meet: Meet = (...request) => [...stops].some((stop) => stop(...request));

  async function pass(body: string, response: ServerResponse): Promise<void> {
    const calls = [JSON.parse(body)].flat() as Exchange['calls'];
    if (meet('asked', { calls, results: [] }, response)) return;
    const answer = await node.post(body);
    const replies = new Map([JSON.parse(answer)].flat().map(({ id, result }) => [id, result]));
    const exchange = { calls, results: calls.map(({ id }) => replies.get(id)) };
    if (meet('forwarded', exchange, response)) return;
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(answer, () => meet('answered', exchange, response));
  }

  const server = createServer((request, response) => {
    // A service that is killed in between takes its connection along.
    text(request)
      .then((body) => pass(body, response))
      .catch(() => response.destroy());
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const address = server.address();

  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    /** Stops the next request that matches. `isIt` is asked at that very moment; when it says no, the one after is tried. */
    stopAt({ stage, matches }: Stop, isIt: () => boolean): Standing {
      const { promise: reached, resolve } = Promise.withResolvers<void>();
      let [stopped, held] = [false, null as ServerResponse | null];
      const stop: Meet = (at, exchange, response) => {
        if (stopped || at !== stage || !matches(exchange) || !isIt()) return false;
        stopped = true;
        if (at !== 'answered') held = response;
        resolve();
        return true;
      };
      stops.add(stop);
      return {
        reached,
        holds: () => stopped && (held === null || !held.destroyed),
        letGo: () => {
          stops.delete(stop);
          held?.destroy();
        },
      };
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
      await node.close();
    },
  };
}

export type KillProxy = Awaited<ReturnType<typeof startKillProxy>>;
