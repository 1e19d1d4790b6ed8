import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const HEAD_END = '\r\n\r\n';
const LENGTH = /content-length: (\d+)/i;

/**
 * One keep-alive connection that sends prepared bytes and reads one answer at a time.
 * It does as little as possible, because the load generator shares two cores with the service under test.
 */
export async function openRawClient(origin: string) {
  const { hostname, port } = new URL(origin);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, 'connect');
  return {
    send: (bytes: Uint8Array) => exchange(socket, bytes),
    close: () => socket.destroy(),
  };
}

/** A POST of JSON as the bytes to send. */
export function postOf(origin: string, path: string, body: string): Buffer {
  const head = [`POST ${path} HTTP/1.1`, `Host: ${new URL(origin).host}`, 'Content-Type: application/json'];
  return Buffer.from(`${[...head, `Content-Length: ${Buffer.byteLength(body)}`].join('\r\n')}${HEAD_END}${body}`);
}

/** A GET as the bytes to send. */
export function getOf(origin: string, target: string, headers: Readonly<Record<string, string>> = {}): Buffer {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const head = [`GET ${target} HTTP/1.1`, `Host: ${new URL(origin).host}`, ...fields];
  return Buffer.from(`${head.join('\r\n')}${HEAD_END}`);
}

/** Sends the bytes and returns the body of the answer. */
function exchange(socket: Socket, bytes: Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const over = (finish: () => void) => {
      socket.off('data', read).off('error', broken).off('close', broken);
      finish();
    };
    const broken = (error?: unknown) => over(() => reject(error instanceof Error ? error : new Error('closed')));
    const read = (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const head = text.indexOf(HEAD_END);
      if (head < 0) return;
      const body = text.slice(head + HEAD_END.length);
      if (body.length >= Number(LENGTH.exec(text)?.[1])) over(() => resolve(body));
    };
    socket.on('data', read).on('error', broken).on('close', broken);
    socket.write(bytes);
  });
}
