import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { ownPort } from '../service/own-port.ts';

/** The fourteen ways in which an upstream fails. */
export const FAULTS = [
  'refused',
  'reset',
  'time-out',
  'slow-body',
  'redirect-loop',
  '404',
  '429',
  '500',
  'html',
  'truncated-json',
  'wrong-shape',
  'huge',
  'wrong-content-type',
  'encoding-lie',
] as const;
export type Fault = (typeof FAULTS)[number];

/** A recorded answer: 200 and JSON unless it says otherwise. */
export interface Recorded {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

/** A request as it came. */
export interface Received {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

type Answer = Recorded | ((request: Received) => Recorded | Promise<Recorded>);

/** A local upstream whose every answer and fault the test decides. */
export interface Replay {
  readonly url: string;
  readonly port: number;
  /**
   * By `POST /path?query`, `/path?query`, `POST /path` or `/path`, the first that is there; `*` for everything else.
   * A request without a recording gets 404.
   */
  readonly answers: Record<string, Answer>;
  readonly received: Received[];
  /** Makes every request fail in this way; null ends the fault. With a path prefix, only requests below it fail (not for `refused`). */
  setFault(fault: Fault | null, prefix?: string): Promise<void>;
  stop(): Promise<void>;
}

/** A certificate for good.example, *.good.example, localhost and 127.0.0.1, and the authority that signed it. */
const certificate = (name: string) => readFileSync(join(import.meta.dirname, 'certificates', name), 'utf8');
export const TEST_CA = certificate('ca.pem');
/** A certificate for good.example that signed itself and expired in 2020. */
export const EXPIRED = certificate('expired.pem');

/**
 * More bytes than any upstream may send: 128 MiB, compressed to some 130 KiB. They are 128 gzip members, one after the other, because a single one takes
 * a second to make.
 */
const HUGE = Buffer.concat(Array(128).fill(gzipSync(Buffer.alloc(1024 * 1024, '['))));

/** The port for an upstream that is to fail so. One that refuses closes its port, so it needs one that nobody else is given meanwhile. */
export const portFor = async (fault: Fault | null): Promise<number> => (fault === 'refused' ? await ownPort() : 0);

/** Starts a replaying upstream on loopback; `tls` serves the first certificate above, or the expired one. */
export async function startReplay(
  answers: Record<string, Answer> = {},
  { tls = false, port = 0 }: { tls?: boolean | 'expired'; port?: number } = {},
): Promise<Replay> {
  let fault: { kind: Fault; prefix: string } | null = null;
  const received: Received[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    response.on('error', () => undefined);
    let body = '';
    for await (const chunk of request) body += chunk;
    const { method = 'GET', url = '/', headers } = request;
    const got = { method, url, headers, body };
    received.push(got);
    const answer = await find(answers, got);
    if (fault && url.startsWith(fault.prefix)) fail(fault.kind, answer, got, response);
    else send(response, answer);
  };
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    void handle(request, response).catch(() => response.destroy());
  const name = tls === 'expired' ? 'expired' : 'server';
  const server = tls
    ? createTlsServer({ cert: certificate(`${name}.pem`), key: certificate(`${name}-key.pem`) }, listener)
    : createServer(listener);
  const listen = (at: number) => new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  await listen(port);
  const bound = (server.address() as AddressInfo).port;

  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${bound}`,
    port: bound,
    answers,
    received,
    async setFault(kind, prefix = '/') {
      fault = kind === null ? null : { kind, prefix };
      if (kind === 'refused') await close();
      else if (!server.listening) await listen(bound);
    },
    stop: close,
  };
}

async function find(answers: Record<string, Answer>, request: Received): Promise<Recorded> {
  const { method, url } = request;
  const path = url.split('?')[0] ?? url;
  // HEAD is answered as GET is; node leaves the body out.
  const methods = method === 'HEAD' ? ['HEAD', 'GET'] : [method];
  const exact = methods.flatMap((one) => [`${one} ${url}`, url]);
  const keys = [...exact, ...methods.map((one) => `${one} ${path}`), path, '*'];
  const key = keys.find((name) => answers[name] !== undefined);
  const answer = key === undefined ? { status: 404, body: '{}' } : answers[key];
  return typeof answer === 'function' ? await answer(request) : (answer ?? {});
}

function send(response: ServerResponse, { status = 200, headers = {}, body = '' }: Recorded): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}

/** Sends a faulty answer. Faults of form start from the right answer, so that only the fault differs. */
function fail(kind: Fault, right: Recorded, request: Received, response: ServerResponse): void {
  const whole = Buffer.from(right.body ?? '{}');
  const say = (recorded: Recorded) => send(response, recorded);
  const faults: Record<Fault, () => unknown> = {
    refused: () => response.destroy(),
    reset: () => response.socket?.resetAndDestroy(),
    'time-out': () => undefined,
    'slow-body': () => {
      response.writeHead(200, { 'content-type': right.headers?.['content-type'] ?? 'application/json' });
      const drip = setInterval(() => response.write(' '), 50);
      response.once('close', () => clearInterval(drip));
    },
    'redirect-loop': () => say({ status: 302, headers: { location: request.url } }),
    '404': () => say({ status: 404, body: '{}' }),
    '429': () => say({ status: 429, body: '{}' }),
    '500': () => say({ status: 500, body: '{"message":"internal"}' }),
    html: () => say({ headers: { 'content-type': 'text/html' }, body: '<html><body>come back later</body></html>' }),
    'truncated-json': () => say({ ...right, body: whole.subarray(0, Math.floor(whole.length / 2)) }),
    'wrong-shape': () => say({ body: '{"surprise":true}' }),
    huge: () => say({ headers: { ...right.headers, 'content-encoding': 'gzip' }, body: HUGE }),
    'wrong-content-type': () => say({ ...right, headers: { ...right.headers, 'content-type': 'image/png' } }),
    'encoding-lie': () => say({ ...right, headers: { ...right.headers, 'content-encoding': 'gzip' } }),
  };
  faults[kind]();
}
