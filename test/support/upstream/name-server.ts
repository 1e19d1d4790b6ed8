import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';

/** The addresses of a name at the moment of a question. No addresses mean that the name does not exist. */
export type Zone = (name: string, asked: number) => readonly string[];

/** A name server on loopback whose every answer the test decides, so that it can answer one thing now and another the next time. */
export interface NameServer {
  /** `127.0.0.1:port`, as resolvers want it. */
  readonly address: string;
  /** `A name` or `AAAA name`, in the order in which they were asked. */
  readonly asked: string[];
  stop(): Promise<void>;
}

const TYPES: Record<number, 'A' | 'AAAA'> = { 1: 'A', 28: 'AAAA' };
/** RFC 1035: the type of a record that names a name server. */
const NS = 2;
/** `a.root-servers.net` as RFC 1035 writes a name. */
const ROOT_SERVER = Buffer.from('\x01a\x0croot-servers\x03net\x00', 'latin1');
const HEADER_BYTES = 12;
/** RFC 1035: what an answer says instead of records. */
const CODES = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 } as const;
type Code = keyof typeof CODES;

/**
 * Starts it; `zone` gets the name and how often it was asked for with that type before. `root` is what it says of the root's name servers: `null` has
 * it drop the question. By default it knows one.
 */
export async function startNameServer(
  zone: Zone,
  { root = 'known' }: { root?: Code | 'known' | null } = {},
): Promise<NameServer> {
  const asked: string[] = [];
  const counts = new Map<string, number>();
  const answers = new Map<string, Buffer>();
  const socket = createSocket('udp4', (query: Buffer, from: RemoteInfo) => {
    const { name, type, end } = readQuestion(query);
    const { port, address: host } = from;
    if (type === NS && name === '') {
      if (root === null) return;
      const [servers, code]: [Buffer[], Code] = root === 'known' ? [[ROOT_SERVER], 'NOERROR'] : [[], root];
      return socket.send(answer(query.subarray(0, end), type, servers, code), port, host);
    }
    const kind = TYPES[type];
    if (kind === undefined) return;
    // A resolver that waited too long sends the same bytes from the same port again, and means the same question.
    const sent = `${port} ${query.toString('latin1')}`;
    const given = answers.get(sent);
    if (given) return socket.send(given, port, host);
    const question = `${kind} ${name}`;
    const before = counts.get(question) ?? 0;
    counts.set(question, before + 1);
    asked.push(question);
    const addresses = zone(name, before);
    const wanted = addresses.filter((address) => address.includes(':') === (kind === 'AAAA'));
    const reply = answer(
      query.subarray(0, end),
      type,
      wanted.map(bytesOf),
      addresses.length > 0 ? 'NOERROR' : 'NXDOMAIN',
    );
    answers.set(sent, reply);
    socket.send(reply, port, host);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    stop: async () => {
      socket.close();
      await once(socket, 'close');
    },
  };
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** RFC 1035: the question again, then one record for each datum, with a time to live of zero. */
function answer(query: Buffer, type: number, data: readonly Buffer[], code: Code): Buffer {
  const head = Buffer.from(query);
  // A response, recursion available.
  head.writeUInt16BE(0x8180 + CODES[code], 2);
  head.writeUInt16BE(data.length, 6);
  head.writeUInt32BE(0, 8);
  const records = data.map((bytes) => {
    const record = Buffer.alloc(12);
    record.writeUInt16BE(0xc00c, 0);
    record.writeUInt16BE(type, 2);
    record.writeUInt16BE(1, 4);
    record.writeUInt16BE(bytes.length, 10);
    return Buffer.concat([record, bytes]);
  });
  return Buffer.concat([head, ...records]);
}

function bytesOf(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number));
  // The URL parser writes every form of an IPv6 address out in its shortest one, without a dotted end.
  const [left = '', right] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const parts = (text: string | undefined) => (text ? text.split(':').map((part) => Number.parseInt(part, 16)) : []);
  const [before, after] = [parts(left), parts(right)];
  const words = [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
  const bytes = Buffer.alloc(16);
  words.forEach((word, index) => {
    bytes.writeUInt16BE(word, index * 2);
  });
  return bytes;
}
