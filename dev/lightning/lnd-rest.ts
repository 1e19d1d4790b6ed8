import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Received } from './node.ts';

/** The node behind the REST interface. */
interface LndRestOptions {
  /** 66 hex characters. */
  readonly nodeId: string;
  readonly network: 'mainnet' | 'testnet';
  createInvoice(order: { amountMsat: bigint; descriptionHash: Uint8Array; expirySeconds: number }): string;
  /** The payment hash of an invoice, in hex. */
  hashOf(invoice: string): string;
  /** Received payments by payment hash in hex. */
  readonly received: ReadonlyMap<string, Received>;
}

/** LND's REST interface of a node, with its only macaroon. */
interface LndRest extends LoopbackServer {
  /** As hex digits. It permits creating and reading invoices and reading the node's id. It does not permit spending. */
  readonly macaroon: string;
}

/** The permissions of an invoice macaroon with `info:read`, as LND names them. */
const PERMITTED = new Set([
  'invoices:read',
  'invoices:write',
  'address:read',
  'address:write',
  'onchain:read',
  'info:read',
]);
/** The most invoices that can be looked up: far more than are open at a time. */
const REMEMBERED = 10_000;

/** Serves the part of LND's REST interface that a seller uses, on loopback. */
export async function startLndRest({
  nodeId,
  network,
  createInvoice,
  hashOf,
  received,
}: LndRestOptions): Promise<LndRest> {
  const macaroon = randomBytes(32).toString('hex');
  const invoices = new Map<string, string>();

  function addInvoice({ body }: JsonRequest): JsonAnswer {
    const [msat, expiry] = [String(body.value_msat ?? ''), String(body.expiry ?? '3600')];
    const descriptionHash = Buffer.from(String(body.description_hash ?? ''), 'base64');
    if (!/^[1-9]\d{0,17}$/.test(msat)) return failure(400, 3, 'value_msat must be positive');
    if (!/^[1-9]\d{0,8}$/.test(expiry)) return failure(400, 3, 'expiry must be positive');
    if (descriptionHash.length !== 32) return failure(400, 3, 'description_hash must be 32 bytes');
    const invoice = createInvoice({ amountMsat: BigInt(msat), descriptionHash, expirySeconds: Number(expiry) });
    const hash = hashOf(invoice);
    invoices.set(hash, invoice);
    const [oldest] = invoices.keys();
    if (invoices.size > REMEMBERED && oldest !== undefined) invoices.delete(oldest);
    const rHash = Buffer.from(hash, 'hex').toString('base64');
    return { status: 200, body: { r_hash: rHash, payment_request: invoice, add_index: String(invoices.size) } };
  }

  function lookUp(hash: string): JsonAnswer {
    const invoice = invoices.get(hash);
    if (invoice === undefined) return failure(404, 5, 'unable to locate invoice');
    return { status: 200, body: { payment_request: invoice, ...stateOf(received.get(hash)) } };
  }

  return Object.assign(
    await startJsonServer(async (request) => {
      const given = request.headers['grpc-metadata-macaroon'];
      if (given === undefined) return failure(500, 2, 'expected 1 macaroon, got 0');
      if (given !== macaroon)
        return failure(500, 2, 'verification failed: signature mismatch after caveat verification');
      const asked = /^GET \/v1\/invoice\/([0-9a-f]{64})$/.exec(request.line)?.[1];
      if (asked !== undefined) return lookUp(asked);
      switch (request.line) {
        case 'GET /v1/getinfo': {
          const chains = [{ chain: 'bitcoin', network }];
          return { status: 200, body: { identity_pubkey: nodeId, alias: 'embedded', chains, synced_to_chain: true } };
        }
        case 'POST /v1/invoices':
          return addInvoice(request);
        case 'POST /v1/macaroon/checkpermissions':
          return { status: 200, body: { valid: permitted(request.body.permissions) } };
        default:
          return failure(404, 5, 'Not Found');
      }
    }),
    { macaroon },
  );
}

/** An invoice's state in LND's words. Real LND shows the preimage of an open invoice too. */
function stateOf(paid: Received | undefined): object {
  if (!paid) return { settled: false, state: 'OPEN', amt_paid_msat: '0' };
  const { amountMsat, preimage } = paid;
  const settled = { settled: true, state: 'SETTLED', amt_paid_msat: String(amountMsat) };
  return preimage === null ? settled : { ...settled, r_preimage: Buffer.from(preimage).toString('base64') };
}

function permitted(asked: unknown): boolean {
  const list = Array.isArray(asked) ? asked : [];
  return list.length > 0 && list.every((entry) => PERMITTED.has(`${entry?.entity}:${entry?.action}`));
}

/** An error as LND sends it: a gRPC status as JSON. */
function failure(status: number, code: number, message: string): JsonAnswer {
  return { status, body: { code, message, details: [] } };
}

/** A request to a small JSON service. */
export interface JsonRequest {
  /** Method and path: `POST /v1/invoices`. */
  readonly line: string;
  readonly headers: IncomingHttpHeaders;
  /** The body; an empty object when there was none. */
  readonly body: Record<string, unknown>;
}

export interface JsonAnswer {
  readonly status: number;
  readonly body: object;
}

const MAX_BYTES = 65_536;

/** Serves on a free port of 127.0.0.1. An error of the handler is answered 500 with its message, because only this process's tests and demos call it. */
export async function startJsonServer(handle: (request: JsonRequest) => Promise<JsonAnswer>): Promise<LoopbackServer> {
  const server = createServer(async (request, response) => {
    let answer: JsonAnswer;
    try {
      const body = await readObject(request);
      const path = new URL(request.url ?? '/', 'http://localhost').pathname;
      const line = `${request.method} ${path}`;
      answer = body
        ? await handle({ line, headers: request.headers, body })
        : refusal(400, 'the body is no JSON object');
    } catch (error) {
      answer = refusal(500, error instanceof Error ? error.message : String(error));
    }
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
  });
  return listenOnLoopback(server);
}

/** An answer that says what is wrong. */
export function refusal(status: number, error: string): JsonAnswer {
  return { status, body: { error } };
}

async function readObject(request: IncomingMessage): Promise<Record<string, unknown> | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) return null;
    chunks.push(chunk);
  }
  if (bytes === 0) return {};
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

/** A small service on loopback, until it is stopped. */
export interface LoopbackServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Listens on a free port of 127.0.0.1. `stop` closes every connection, and returns when the server is closed. */
export async function listenOnLoopback(server: Server): Promise<LoopbackServer> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
