import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, brotliCompressSync, constants, gzip, gzipSync } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { sendAnswer } from './cache.ts';

/** One text in every form in which it can be sent; each form has a strong ETag of its own. */
export interface Encoded {
  readonly contentType: string;
  readonly forms: Readonly<Record<Encoding, { readonly bytes: Buffer; readonly etag: string }>>;
  /** Of the text itself, for names. */
  readonly hash: string;
}

/** A text whose hash is known, and which is compressed when it is first asked for. */
export interface Encodable {
  readonly hash: string;
  encoded(): Promise<Encoded>;
}

/** In the order in which we like to send them. */
const ENCODINGS = ['br', 'gzip', 'identity'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** How hard brotli tries: 9 is within a tenth of the best and twenty times as fast, 4 costs what gzip does. */
const BROTLI = { kept: 9, once: 4 };

/** Compresses a text that will soon be another, at once and without much effort. */
export function encode(text: string, contentType: string): Encoded {
  const bytes = Buffer.from(text);
  const br = brotliCompressSync(bytes, brotliOptions('once', bytes));
  return withForms(bytes, hashOf(bytes), contentType, br, gzipSync(bytes));
}

/** Compresses a text that will be sent many times, once and beside the event loop: no start waits for what nobody may ask for. */
export function encodeWhenAsked(bytes: Buffer, contentType: string): Encodable {
  const hash = hashOf(bytes);
  const compress = async () => {
    const br = promisify(brotliCompress)(bytes, brotliOptions('kept', bytes));
    return withForms(bytes, hash, contentType, ...(await Promise.all([br, promisify(gzip)(bytes)])));
  };
  let made: Promise<Encoded> | undefined;
  return {
    hash,
    encoded: () => {
      // One that failed, as for want of memory, must not fail for ever.
      made ??= compress().catch((error: unknown) => {
        made = undefined;
        throw error;
      });
      return made;
    },
  };
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 16);
}

function brotliOptions(effort: keyof typeof BROTLI, { length }: Buffer) {
  return { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI[effort], [constants.BROTLI_PARAM_SIZE_HINT]: length } };
}

function withForms(bytes: Buffer, hash: string, contentType: string, br: Buffer, gz: Buffer): Encoded {
  return {
    contentType,
    hash,
    forms: {
      br: { bytes: br, etag: `"${hash}-br"` },
      gzip: { bytes: gz, etag: `"${hash}-gz"` },
      identity: { bytes, etag: `"${hash}"` },
    },
  };
}

/** The best form that an `Accept-Encoding` admits (RFC 9110, 12.5.3); plain bytes where it names none of ours. */
export function chooseEncoding(acceptEncoding: string | undefined): Encoding {
  const accepted = new Set(
    (acceptEncoding ?? '').split(',').flatMap((item) => {
      const [name = '', ...params] = item.split(';').map((part) => part.trim().toLowerCase());
      return params.some((param) => /^q=0(\.0{0,3})?$/.test(param)) ? [] : [name];
    }),
  );
  return ENCODINGS.find((encoding) => accepted.has(encoding)) ?? 'identity';
}

/** Sends a text in the form that the caller takes, or 304 to who holds that form already. */
export function sendEncoded(
  request: FastifyRequest,
  reply: FastifyReply,
  encoded: Encoded,
  cacheControl: string,
): void {
  const encoding = chooseEncoding(String(request.headers['accept-encoding'] ?? ''));
  const { bytes, etag } = encoded.forms[encoding];
  reply.header('vary', 'accept-encoding');
  sendAnswer(request, reply, {
    ...{ body: bytes, contentType: encoded.contentType, etag, cacheControl },
    ...(encoding !== 'identity' && { contentEncoding: encoding }),
  });
}
