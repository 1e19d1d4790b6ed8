import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { type LoopbackServer, listenOnLoopback } from '../loopback.ts';

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
