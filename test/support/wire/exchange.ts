import { request as httpRequest } from 'node:http';

/** The parts of a request. The request line is in the transcript; the title describes the rest. */
export interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The loopback address to call from; another address is another client. */
  readonly from?: string;
}

/** An answer with its header names in their original case and order. */
export interface RawAnswer {
  readonly status: number;
  readonly reason: string;
  readonly head: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

/** One HTTP request over its own connection. */
export function exchange(origin: string, path: string, sent: Sent = {}): Promise<RawAnswer> {
  const { method = 'GET', headers = {}, body, from } = sent;
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const target = { hostname, port, path, method, headers, agent: false as const };
    const asked = httpRequest({ ...target, ...(from && { localAddress: from }) }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const { statusCode: status = 0, statusMessage: reason = '', rawHeaders } = response;
        const head = rawHeaders.flatMap((name, at) =>
          at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ''] as const] : [],
        );
        resolve({ status, reason, head, body: Buffer.concat(chunks).toString('utf8') });
      });
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

/** The value of a header. Throws when the answer has none. */
export function headerIn({ head }: RawAnswer, name: string): string {
  const found = head.find(([given]) => given.toLowerCase() === name);
  if (!found) throw new Error(`the answer has no ${name}`);
  return found[1];
}

/** The JSON in a base64 header. */
export function decodedIn(answer: RawAnswer, name: 'payment-required' | 'payment-response'): Record<string, unknown> {
  return JSON.parse(Buffer.from(headerIn(answer, name), 'base64').toString('utf8'));
}
