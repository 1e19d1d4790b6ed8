/** Operations that a macaroon allows, as `entity:action`. */
export type Permissions = readonly string[];

interface Field {
  readonly number: number;
  readonly bytes: Buffer;
}

/** Longer than any macaroon that LND makes. */
const MAX_BYTES = 8192;
/** The libmacaroons binary format, version 2. LND writes no other. */
const MACAROON_V2 = 2;
const LOCATION = 1;
const IDENTIFIER = 2;
/** The bakery's identifier, version 3: a protobuf of nonce (1), storage id (2) and operations (3). */
const IDENTIFIER_V3 = 3;
const OPERATIONS = 3;
const ENTITY = 1;
const ACTIONS = 2;

/**
 * What an LND macaroon allows, read from its own bytes. They hold the operations unencrypted, and caveats can only narrow them. Null when the
 * macaroon is not in LND's format. Asking the node instead would need a permission that a properly restricted macaroon does not have.
 */
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

/** Reads the identifier from packets of a type, a length and that many bytes. A location packet may come first. */
function identifierOf(packets: Buffer): Buffer | null {
  const cursor = { at: 0 };
  let type = varint(packets, cursor);
  if (type === LOCATION) {
    chunk(packets, cursor);
    type = varint(packets, cursor);
  }
  return type === IDENTIFIER ? chunk(packets, cursor) : null;
}

/** The fields of a protobuf message whose fields are all length-delimited. Throws for any other message. */
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
