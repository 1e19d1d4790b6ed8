import { randomBytes } from 'node:crypto';
import type { LoopbackServer } from '../loopback.ts';
import { type JsonAnswer, type JsonRequest, startJsonServer } from './json-server.ts';
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
export interface LndRest extends LoopbackServer {
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
