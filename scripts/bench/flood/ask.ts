import { type Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';

/** What came of one request. */
export interface Answer {
  /** 0 where there was no answer. */
  readonly status: number;
  /** Why it was refused, in the service's word for it; `timeout` or the socket's own word where there was no answer; empty for 200. */
  readonly code: string;
  readonly retryAfterMs: number | null;
  /** The PAYMENT-REQUIRED header, decoded; null without one. */
  readonly challenge: Challenge | null;
  readonly ms: number;
}

/** What a 402 says. */
export interface Challenge {
  readonly error?: string;
  readonly accepts: readonly unknown[];
}

interface Question {
  readonly origin: string;
  readonly path: string;
  /** Loopback address to ask from: each is a client of its own. */
  readonly from: string;
  readonly headers?: Record<string, string>;
  /** One connection for this request alone by default. */
  readonly agent?: Agent;
  readonly timeoutMs: number;
}

/** One GET; never rejects. */
export function ask({ origin, path, from, headers = {}, agent, timeoutMs }: Question): Promise<Answer> {
  const { hostname, port } = new URL(origin);
  const started = performance.now();
  const signal = AbortSignal.timeout(timeoutMs);
  return new Promise((resolve) => {
    const fail = (error: NodeJS.ErrnoException) => {
      const code = signal.aborted ? 'timeout' : (error.code ?? 'broken');
      resolve({ status: 0, code, retryAfterMs: null, challenge: null, ms: performance.now() - started });
    };
    const options = { hostname, port, path, headers, localAddress: from, agent: agent ?? false, signal };
    const sent = httpRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ ...read(response.statusCode ?? 0, response.headers, text), ms: performance.now() - started });
      });
    });
    sent.on('error', fail).end();
  });
}

function read(status: number, headers: IncomingHttpHeaders, text: string): Omit<Answer, 'ms'> {
  const challenge = challengeOf(headers['payment-required']);
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : null;
  const code = status === 200 ? '' : (challenge?.error ?? problemCode(text));
  return { status, code, retryAfterMs, challenge };
}

function challengeOf(header: string | string[] | undefined): Challenge | null {
  return header === undefined ? null : JSON.parse(Buffer.from(String(header), 'base64').toString('utf8'));
}

function problemCode(text: string): string {
  return /"code":"([^"]+)"/.exec(text)?.[1] ?? 'without a code';
}
