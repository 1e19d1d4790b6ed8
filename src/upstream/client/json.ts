import type { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';

/**
 * JSON's own types, those ending in +json (or -json, as the DNS ones do), and the wrong types that servers of JSON are known to send.
 * A web page's type is not among them.
 */
const JSON_TYPE =
  /^(application\/([\w.+-]+[+-])?json|text\/(json|plain|javascript)|application\/(javascript|octet-stream|x-javascript))\s*(;|$)/i;

/** The parsed body. Throws UpstreamFailed for another content type, for invalid JSON, and for JSON that does not fit the schema. */
export function parseJson<T>(upstream: string, contentType: string | undefined, body: Buffer, schema: z.ZodType<T>): T {
  if (contentType !== undefined && !JSON_TYPE.test(contentType)) {
    throw new UpstreamFailed(upstream, `answered ${mediaTypeOf(contentType)} instead of JSON`);
  }
  const parsed = schema.safeParse(readJson(upstream, body));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new UpstreamFailed(
    upstream,
    `answered JSON of an unexpected shape (${issue?.path.join('.') || 'at the top'})`,
    parsed.error,
  );
}

function readJson(upstream: string, body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (cause) {
    throw new UpstreamFailed(upstream, 'answered what is not JSON', cause);
  }
}

/** The media type without its parameters, restricted to safe characters, because it is shown in messages. */
export function mediaTypeOf(contentType: string): string {
  const type = (contentType.split(';')[0] ?? '').trim().toLowerCase();
  return /^[\w.+-]+\/[\w.+-]+$/.test(type) ? type.slice(0, 100) : 'an unnamed type';
}
