import { createServer, type IncomingMessage } from 'node:http';
import { jsonOrUndefined } from '../../../src/lib/untrusted.ts';

/** One request as a stand-in sees it. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** As it came. */
  readonly text: string;
  /** The body's JSON, or null. */
  // biome-ignore lint/suspicious/noExplicitAny: a third party's request, which each stand-in reads as its API describes it
  readonly body: any;
}

/** A status with headers, and JSON or text; null hangs until the stand-in stops. */
export type Answered = {
  status?: number;
  headers?: Record<string, string>;
  json?: unknown;
  text?: string;
  /** True breaks the connection before the body is complete. */
  isCutOff?: boolean;
  /** True breaks it before any byte of the answer. */
  isBroken?: boolean;
} | null;

/** A third party's service over real HTTP on 127.0.0.1. It keeps the requests that it gets. */
export async function startStandIn(answer: (asked: Asked) => Promise<Answered>) {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', async () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://stand.in');
      // A form stays text.
      const body = text === '' ? null : (jsonOrUndefined(text) ?? text);
      const one = {
        method: request.method ?? '',
        path: pathname,
        query: searchParams,
        headers: request.headers,
        text,
        body,
      };
      asked.push(one);
      const got = await answer(one).catch((error: unknown): Answered => ({ status: 500, text: String(error) }));
      if (got === null || response.destroyed) return;
      if (got.isBroken) return response.destroy();
      response.statusCode = got.status ?? 200;
      for (const [name, value] of Object.entries(got.headers ?? {})) response.setHeader(name, value);
      if ('json' in got) response.setHeader('content-type', 'application/json');
      const sent = 'json' in got ? JSON.stringify(got.json) : got.text;
      if (!got.isCutOff) return response.end(sent);
      response.write(sent ?? '', () => response.destroy());
    });
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    asked,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
