import { z } from 'zod';
import { jsonOrNull } from '../../../lib/untrusted.ts';
import type { Upstream } from '../../../upstream/client/client.ts';
import { askNode, invoiceText, nodeKeyText, type Receiver } from './receiver.ts';

// An LND node over its REST interface (`/v1/invoices`, `/v1/invoice/{r_hash}`, `/v1/getinfo`), and what its macaroon
// allows, read from the macaroon's own bytes.

const NEED = 'info:read, invoices:read and invoices:write';
/** Permissions that can send money from the node. A `uri` permission allows one call by its name. */
const SPENDING = new Set(['offchain:write', 'onchain:write', 'signer:generate', 'macaroon:generate', 'macaroon:write']);
const HARMLESS_CALL =
  /^uri:\/(lnrpc\.Lightning\/(AddInvoice|LookupInvoice|ListInvoices|SubscribeInvoices|GetInfo|DecodePayReq|CheckMacaroonPermissions)|invoicesrpc\.Invoices\/\w+)$/;

const created = z.object({ payment_request: invoiceText });
const info = z.object({ identity_pubkey: nodeKeyText });
const looked = z.object({ state: z.string() });
const checked = z.object({ valid: z.boolean() });

/** Amounts are decimal strings: in protobuf's JSON, 64-bit numbers are strings. */
export function createLnd(upstream: Upstream, url: string, macaroon: string): Receiver {
  const headers = { 'Grpc-Metadata-macaroon': macaroon };
  const get = (path: string, signal: AbortSignal) => ({ url: `${url}${path}`, headers, signal });
  const post = (path: string, body: object, signal: AbortSignal) => ({
    url: `${url}${path}`,
    method: 'POST' as const,
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  });

  /** For a macaroon that we cannot read: whether it allows writing to `entity`. Null when the node does not say. */
  async function mayWrite(entity: string, signal: AbortSignal): Promise<boolean | null> {
    const permissions = [{ entity, action: 'write' }];
    const body = { macaroon: Buffer.from(macaroon, 'hex').toString('base64'), permissions };
    const { status, body: answer } = await upstream.fetch(post('/v1/macaroon/checkpermissions', body, signal));
    if (status === 400) return false;
    const parsed = status === 200 ? checked.safeParse(jsonOrNull(answer)) : null;
    return parsed?.success ? parsed.data.valid : null;
  }

  return {
    kind: 'lnd',
    nodeKey: async (signal) => (await askNode(upstream, get('/v1/getinfo', signal), info, NEED)).identity_pubkey,
    inspect: async (signal) => {
      const permissions = macaroonPermissions(Buffer.from(macaroon, 'hex'));
      if (permissions) {
        const powers = permissions.filter(
          (name) => SPENDING.has(name) || (name.startsWith('uri:') && !HARMLESS_CALL.test(name)),
        );
        return powers.length > 0 ? [tooWide(powers.join(', '))] : [];
      }
      const answers = [await mayWrite('offchain', signal), await mayWrite('onchain', signal)];
      if (answers.includes(true)) return [tooWide('writing off-chain or on-chain')];
      return answers.includes(null) ? [`the node does not show what the macaroon allows; ${NEED} are enough`] : [];
    },
    createInvoice: async ({ amountMsat, requestHash, expirySeconds }, signal) => {
      const order = {
        value_msat: amountMsat.toString(),
        description_hash: Buffer.from(requestHash).toString('base64'),
        expiry: expirySeconds.toString(),
      };
      return (await askNode(upstream, post('/v1/invoices', order, signal), created, NEED)).payment_request;
    },
    isPaid: async (paymentHash, signal) => {
      const path = `/v1/invoice/${Buffer.from(paymentHash).toString('hex')}`;
      return (await upstream.json(get(path, signal), looked))?.state === 'SETTLED';
    },
    close: async () => undefined,
  };
}

function tooWide(powers: string): string {
  return `the macaroon allows more than receiving (${powers}); ${NEED} are enough`;
}

/** As `entity:action`. */
type Permissions = readonly string[];

interface Field {
  readonly number: number;
  readonly bytes: Buffer;
}

/** Longer than any macaroon that LND makes. */
const MAX_BYTES = 8192;
/** The libmacaroons binary format, version 2, the only one that LND writes. */
const MACAROON_V2 = 2;
const LOCATION = 1;
const IDENTIFIER = 2;
/** The bakery's identifier, version 3: a protobuf of nonce (1), storage id (2) and operations (3). */
const IDENTIFIER_V3 = 3;
const OPERATIONS = 3;
const ENTITY = 1;
const ACTIONS = 2;

/** What the bytes hold; caveats can only narrow it. Null in another format. Asking would need one more permission. */
export function macaroonPermissions(macaroon: Buffer): Permissions | null {
  try {
    if (macaroon.length > MAX_BYTES || macaroon[0] !== MACAROON_V2) return null;
    const identifier = identifierOf(macaroon.subarray(1));
    if (identifier?.[0] !== IDENTIFIER_V3) return null;
    const operations = fieldsOf(identifier.subarray(1)).filter(({ number }) => number === OPERATIONS);
    return operations.length === 0 ? null : operations.flatMap(({ bytes }) => permissionsOf(bytes));
  } catch {
    return null;
  }
}

function permissionsOf(operation: Buffer): string[] {
  const fields = fieldsOf(operation);
  const entity = fields.find(({ number }) => number === ENTITY)?.bytes.toString('utf8') ?? '';
  const actions = fields.filter(({ number }) => number === ACTIONS);
  return actions.map(({ bytes }) => `${entity}:${bytes.toString('utf8')}`);
}

/** A packet is a type, a length and that many bytes. A location packet may come first. */
function identifierOf(packets: Buffer): Buffer | null {
  const cursor = { at: 0 };
  let type = varint(packets, cursor);
  if (type === LOCATION) {
    chunk(packets, cursor);
    type = varint(packets, cursor);
  }
  return type === IDENTIFIER ? chunk(packets, cursor) : null;
}

/** Reads a protobuf message whose fields are all length-delimited. Throws for any other message. */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = [];
  const cursor = { at: 0 };
  while (cursor.at < message.length) {
    const tag = varint(message, cursor);
    if ((tag & 7) !== 2) throw new RangeError('not length-delimited');
    fields.push({ number: tag >>> 3, bytes: chunk(message, cursor) });
  }
  return fields;
}

function chunk(bytes: Buffer, cursor: { at: number }): Buffer {
  const length = varint(bytes, cursor);
  const end = cursor.at + length;
  if (end > bytes.length) throw new RangeError('cut short');
  const found = bytes.subarray(cursor.at, end);
  cursor.at = end;
  return found;
}

/** A base-128 integer below 2^21, enough for MAX_BYTES. */
function varint(bytes: Buffer, cursor: { at: number }): number {
  let value = 0;
  for (let shift = 0; shift < 21; shift += 7) {
    const byte = bytes[cursor.at++];
    if (byte === undefined) break;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw new RangeError('no integer');
}
