import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** A node's answer: HTTP status and body, as on the wire. */
interface Answer {
  readonly status: number;
  readonly body: string;
}

/** The part of LND's REST interface that pays. It checks requests as strictly as a real node. */
export interface LndRouter {
  readonly url: string;
  /** The macaroon that it accepts, in hex. */
  readonly macaroon: string;
  /** Method and target of every request, with the query. */
  readonly asked: string[];
  /** The updates that it streams about a payment, by the payment hash in hex. It knows no other payments. */
  readonly payments: Map<string, readonly object[]>;
  /** Replaces every other answer while it is not null. */
  instead: Answer | null;
  stop(): Promise<void>;
}

/** Go's padded base64 alphabets. LND's REST gateway accepts either, and no other spelling. */
const PADDED_BASE64 = /^(?:[\w+/-]{4})*(?:[\w+/-]{2}==|[\w+/-]{3}=)?$/;

/** Starts a router on loopback. `pay` returns the updates of a sent payment. */
export async function startLndRouter(pay: (invoice: string) => Promise<readonly object[]>): Promise<LndRouter> {
  const macaroon = '0201036c6e64';

  async function answer(request: IncomingMessage): Promise<Answer> {
    if (request.headers['grpc-metadata-macaroon'] !== macaroon) {
      return failure(500, 2, 'verification failed: signature mismatch after caveat verification');
    }
    if (router.instead) return router.instead;
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (`${request.method} ${pathname}` === 'POST /v2/router/send') {
      return stream(await pay(JSON.parse(await text(request)).payment_request));
    }
    const hash = request.method === 'GET' && /^\/v2\/router\/track\/([^/]+)$/.exec(pathname)?.[1];
    return hash ? track(decodeURIComponent(hash)) : failure(404, 5, 'Not Found');
  }

  function track(hash: string): Answer {
    if (!PADDED_BASE64.test(hash)) {
      const at = `illegal base64 data at input byte ${hash.length}`;
      return failure(400, 3, `type mismatch, parameter: payment_hash, error: ${at}`);
    }
    const bytes = Buffer.from(hash, 'base64');
    if (bytes.length !== 32) return streamFailure(500, 2, `invalid hash length of ${bytes.length}, want 32`);
    const updates = router.payments.get(bytes.toString('hex'));
    return updates ? stream(updates) : streamFailure(404, 5, "payment isn't initiated");
  }

  const server = createServer(async (request, response) => {
    router.asked.push(`${request.method} ${request.url}`);
    const { status, body } = await answer(request);
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const router: LndRouter = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    macaroon,
    asked: [],
    payments: new Map(),
    instead: null,
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return router;
}

/** Updates as the gateway streams them: one JSON object per line. */
function stream(updates: readonly object[]): Answer {
  return { status: 200, body: updates.map((result) => `${JSON.stringify({ result })}\n`).join('') };
}

/** A stream that fails before its first update. */
function streamFailure(status: number, code: number, message: string): Answer {
  return { status, body: `${JSON.stringify({ error: { code, message, details: [] } })}\n` };
}

/** A refusal by the gateway itself. */
function failure(status: number, code: number, message: string): Answer {
  return { status, body: JSON.stringify({ code, message, details: [] }) };
}
