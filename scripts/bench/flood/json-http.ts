import { createServer, type IncomingMessage } from 'node:http';
import { type LoopbackServer, listenOnLoopback } from '../../../dev/lightning/lnd-rest.ts';

/** A request as the bench's stand-ins see it. */
export interface Asked {
  readonly method: string;
  readonly url: URL;
  /** The body as it came. */
  readonly text: string;
}

/** A status with JSON text. */
export interface Answered {
  readonly status: number;
  readonly text: string;
}

/** Serves on a free port of 127.0.0.1. What the handler throws closes the connection, as a node that has gone does. */
export async function serveJson(answer: (asked: Asked) => Promise<Answered>): Promise<LoopbackServer> {
  const server = createServer((request, response) => {
    const serve = async (): Promise<void> => {
      const url = new URL(request.url ?? '/', 'http://localhost');
      const { status, text } = await answer({ method: request.method ?? '', url, text: await readText(request) });
      response.writeHead(status, { 'content-type': 'application/json' }).end(text);
    };
    serve().catch(() => response.destroy());
  });
  return listenOnLoopback(server);
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** JSON with status 200. */
export function ok(value: unknown): Answered {
  return { status: 200, text: JSON.stringify(value) };
}
