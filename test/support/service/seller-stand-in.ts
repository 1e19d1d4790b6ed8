import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[]>;
  readonly body: string;
}

/** A third party's server whose answers a test sets. */
export interface StandIn {
  readonly origin: string;
  /** The headers of every request with a payment. */
  presented: IncomingHttpHeaders[];
  /** The status of an unpaid answer. */
  status: number;
  /** The headers of an unpaid answer, for a request target. */
  ask: (target: string) => Record<string, string | string[]>;
  /** The body of an unpaid answer. */
  hint: string;
  /** The answer to the `count`th request with a payment. Status 0 breaks the connection. */
  answer: (count: number) => Answer;
  /** JSON documents by their request target. Null: there is none. */
  documents: (target: string) => object | null;
  reset(): void;
  stop(): Promise<void>;
}

const INITIAL = {
  status: 402,
  hint: '{"hint":"pay"}',
  ask: () => ({}),
  answer: () => ({ status: 200, headers: {}, body: '{"answer":42}' }),
  documents: () => null,
};
const DOCUMENTS = ['/openapi.json', '/v1/market/search', '/v1/lightning'];

/** Starts it on a free port of loopback. Every path but those of documents is for sale. */
export async function startSellerStandIn(): Promise<StandIn> {
  const server = createServer((request, response) => {
    const target = request.url ?? '';
    if (DOCUMENTS.some((path) => target.split('?')[0] === path)) {
      const document = standIn.documents(target);
      response.writeHead(document === null ? 404 : 200).end(JSON.stringify(document));
      return;
    }
    if (request.headers.authorization === undefined && request.headers['payment-signature'] === undefined) {
      response.writeHead(standIn.status, standIn.ask(target)).end(standIn.hint);
      return;
    }
    standIn.presented.push(request.headers);
    const { status, headers, body } = standIn.answer(standIn.presented.length);
    if (status === 0) return void response.destroy();
    response.writeHead(status, headers).end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const standIn: StandIn = {
    ...INITIAL,
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    presented: [],
    reset: () => {
      Object.assign(standIn, { ...INITIAL, presented: [] });
    },
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return standIn;
}
