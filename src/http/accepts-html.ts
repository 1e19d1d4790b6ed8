import type { FastifyRequest } from 'fastify';

/**
 * Whether a request asks for a page: a GET or HEAD whose `Accept` names `text/html` and prefers it to JSON, as browsers do. A client that accepts
 * anything gets JSON.
 */
export function acceptsHtml({ method, headers }: Pick<FastifyRequest, 'method' | 'headers'>): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  const weights = new Map(
    String(headers.accept ?? '')
      .split(',')
      .map(readRange),
  );
  const html = weights.get('text/html') ?? 0;
  return html > Math.max(0, weights.get('application/json') ?? 0, weights.get('application/problem+json') ?? 0);
}

/** One media range with its weight (RFC 9110, 12.4.2). */
function readRange(item: string): [type: string, weight: number] {
  const [type = '', ...params] = item.split(';').map((part) => part.trim().toLowerCase());
  const weight = params.find((param) => param.startsWith('q='))?.slice(2);
  return [type, weight === undefined ? 1 : Number(weight) || 0];
}
