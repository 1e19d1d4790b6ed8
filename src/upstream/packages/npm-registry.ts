import type { Transport } from '../client/client.ts';
import type { Exchange } from '../client/exchange.ts';
import { describeFailure, ExchangeFailed } from '../client/failure.ts';

/** The body is larger than the cap. It has its own class, so that the caller can request a smaller document. */
export class AnswerTooLarge extends ExchangeFailed {
  constructor() {
    super('reading', 'its answer is larger than we read');
  }
}

/** npm's own client. Loaded at the first request, because its hundred modules are a twentieth of a start's work. */
const loadClient = async () => (await import('npm-registry-fetch')).default;

/** Without a trailing slash: the given one, else the default of npm's own client. */
export async function registryUrl(override: string | null): Promise<string> {
  const registryFetch = await loadClient();
  return registryFetch.pickRegistry('npm', override === null ? {} : { registry: override }).replace(/\/+$/, '');
}

/** Through npm's own client. A compressed answer is refused, because the client would decompress it without a limit. */
export const registryTransport: Transport = async (sent, maxBytes, signal) => {
  const control = new AbortController();
  const within = AbortSignal.any([signal, control.signal]);
  try {
    const registryFetch = await loadClient();
    const response = await registryFetch(sent.url.href, optionsFor(sent, within));
    const headers = Object.fromEntries(response.headers);
    if (headers['content-encoding'] !== undefined)
      throw new ExchangeFailed('reading', 'its answer has a content coding');
    try {
      return { status: response.status, headers, body: await readAll(response.body, maxBytes), url: response.url };
    } catch (error) {
      throw describeFailure(error, true);
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    return refusalOf(error) ?? fail(error);
  } finally {
    // Closes the connection when the body was not read to its end.
    control.abort();
  }
};

function optionsFor(sent: Exchange, signal: AbortSignal) {
  const { 'user-agent': userAgent = '', ...headers } = sent.headers;
  return { headers: { ...headers, 'accept-encoding': 'identity' }, userAgent, signal, fetchRetries: 0 };
}

async function readAll(body: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes) throw new AnswerTooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

/** The library throws for a status from 400 on. Here it becomes an answer without a body. */
function refusalOf(error: unknown) {
  if (!(error instanceof Error) || !('statusCode' in error) || typeof error.statusCode !== 'number') return null;
  const raw = 'headers' in error && typeof error.headers === 'object' ? error.headers : {};
  const headers = Object.entries((raw ?? {}) as Record<string, string[]>).map(([name, value]) => [
    name.toLowerCase(),
    [value].flat().join(', '),
  ]);
  const url = 'uri' in error ? String(error.uri) : '';
  return { status: error.statusCode, headers: Object.fromEntries(headers), body: Buffer.alloc(0), url };
}

function fail(error: unknown): never {
  if (error instanceof Error && 'code' in error && error.code === 'EMAXREDIRECT') {
    throw new ExchangeFailed('reading', 'redirects too often', error);
  }
  throw describeFailure(error, false);
}
