import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestApp, listen, sendRaw } from './harness.ts';

let t: Awaited<ReturnType<typeof createTestApp>>;
let port: number;
let release: () => void;
beforeAll(async () => {
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  t = await createTestApp({
    extra: (app) => {
      app.get('/t/held', async () => {
        await held;
        return { late: true };
      });
    },
  });
  port = await listen(t.app);
});
afterAll(() => t.app.close());

const REFUSED = [
  [
    'headers past the cap',
    `GET /livez HTTP/1.1\r\nHost: x\r\nBig: ${'a'.repeat(17_000)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  ['no HTTP at all', 'hello\r\n\r\n', 400, 'malformed_request'],
  [
    'two body lengths',
    'POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    400,
    'malformed_request',
  ],
  ['no Host', 'GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'host_missing'],
  [
    'an unknown method on a known path',
    'PROPFIND /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    405,
    'method_not_allowed',
  ],
] as const;

describe('bytes that never become a request', () => {
  it.each(REFUSED)('%s', async (_name, bytes, status, code) => {
    const answer = await sendRaw(port, bytes);
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    const id = /^x-request-id: (\S+)/im.exec(head)?.[1];
    expect(head).toMatch(/^content-type: application\/problem\+json/im);
    expect(head).toMatch(/^connection: close/im);
    expect(head).toMatch(/^access-control-allow-origin: \*/im);
    expect(head).toMatch(/^x-content-type-options: nosniff/im);
    expect(JSON.parse(body)).toMatchObject({ status, code, charged: false, requestId: id });
  });

  it('leave a readable request alone, in HTTP/1.0 without Host too', async () => {
    expect(await sendRaw(port, 'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 200 /,
    );
    expect(await sendRaw(port, 'GET /livez HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('get no refusal while an earlier answer of the connection is still to come', async () => {
    const answer = sendRaw(port, 'GET /t/held HTTP/1.1\r\nHost: x\r\n\r\nrubbish\r\n\r\n');
    expect(await answer).toBe('');
    release();
  });
});
