import type { z } from 'zod';
import { UpstreamFailed } from '../../../../errors.ts';
import type { Upstream, UpstreamRequest } from '../../../../upstream/client/http.ts';
import { parseJson } from '../../../../upstream/client/json.ts';

/**
 * 2xx JSON of the expected shape, or UpstreamFailed. What the credentials do not allow is told apart from a broken node, with what they
 * `need`, because only the operator can mend it. Nothing of the node's own text is passed on: it might repeat what we sent.
 */
export async function askNode<T>(
  upstream: Upstream,
  request: UpstreamRequest,
  schema: z.ZodType<T>,
  need: string,
): Promise<T> {
  const { status, headers, body } = await upstream.fetch(request);
  // LND says a missing permission with 500, in words.
  const denied =
    status === 401 || status === 403 || (status >= 400 && /permission denied/i.test(body.toString('utf8')));
  if (denied) throw new UpstreamFailed(upstream.name, `our credentials are not accepted; they need ${need}`);
  if (status < 200 || status > 299) throw new UpstreamFailed(upstream.name, `answered HTTP ${status}`);
  return parseJson(upstream.name, headers['content-type'], body, schema);
}

/** The body as JSON, or null when it is none. */
export function jsonOrNull(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return null;
  }
}
