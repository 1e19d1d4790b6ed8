/** A macaroon in LND's format, as hex: version 2, with a location, the operations in its identifier, and a signature. */
export function macaroonOf(operations: readonly (readonly string[])[]): string {
  const field = (number: number, ...parts: (Buffer | string)[]) => {
    const bytes = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
    return Buffer.concat([Buffer.from([(number << 3) | 2]), length(bytes), bytes]);
  };
  const packet = (type: number, bytes: Buffer) => Buffer.concat([Buffer.from([type]), length(bytes), bytes]);
  const allowed = operations.map(([entity = '', ...actions]) =>
    field(3, field(1, entity), ...actions.map((action) => field(2, action))),
  );
  const identifier = Buffer.concat([Buffer.from([3]), field(1, Buffer.alloc(16, 7)), field(2, '0'), ...allowed]);
  return Buffer.concat([
    Buffer.from([2]),
    packet(1, Buffer.from('lnd')),
    packet(2, identifier),
    Buffer.from([0, 0]),
    packet(6, Buffer.alloc(32, 9)),
  ]).toString('hex');
}

function length(bytes: Buffer): Buffer {
  return Buffer.from(bytes.length < 128 ? [bytes.length] : [(bytes.length & 127) | 128, bytes.length >> 7]);
}
