import type { z } from 'zod';
import { UpstreamFailed } from '../../../../errors.ts';
import type { Upstream, UpstreamRequest } from '../../../../upstream/client/http.ts';
import { parseJson } from '../../../../upstream/client/json.ts';

/**
 * Returns 2xx JSON of the expected shape. Throws UpstreamFailed otherwise. Refused credentials have a message of their own that names what they
 * `need`, because only the operator can correct that. The node's own text is never passed on, because it may repeat what we sent.
 */
export async function askNode<T>(
  upstream: Upstream,
  request: UpstreamRequest,
  schema: z.ZodType<T>,
  need: string,
): Promise<T> {
  const { status, headers, body } = await upstream.fetch(request);
  // LND answers a missing permission with 500 and a text.
  const denied =
    status === 401 || status === 403 || (status >= 400 && /permission denied/i.test(body.toString('utf8')));
  if (denied) throw new UpstreamFailed(upstream.name, `our credentials are not accepted; they need ${need}`);
  if (status < 200 || status > 299) throw new UpstreamFailed(upstream.name, `answered HTTP ${status}`);
  return parseJson(upstream.name, headers['content-type'], body, schema);
}
