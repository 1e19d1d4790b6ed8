import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, brotliCompressSync, constants, gzip, gzipSync } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { sendAnswer } from './cache.ts';

/** One text in every encoding; each has its own strong ETag. */
export interface Encoded {
  readonly contentType: string;
  readonly forms: Readonly<Record<Encoding, { readonly bytes: Buffer; readonly etag: string }>>;
  /** The hash of the text itself, for file names. */
  readonly hash: string;
}

/** A text whose hash is known, and which is compressed when it is first requested. */
export interface Encodable {
  readonly hash: string;
  encoded(): Promise<Encoded>;
}

/** In the order of preference. */
const ENCODINGS = ['br', 'gzip', 'identity'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Brotli's quality: 9 is within a tenth of the best size and twenty times as fast; 4 costs as much as gzip. */
const BROTLI = { kept: 9, once: 4 };

/** Compresses a text that changes soon, at once and with low quality. */
export function encode(text: string, contentType: string): Encoded {
  const bytes = Buffer.from(text);
  const br = brotliCompressSync(bytes, brotliOptions('once', bytes));
  return withForms(bytes, hashOf(bytes), contentType, br, gzipSync(bytes));
}

/** Compresses a text that is sent many times, once, on its first request and outside of the event loop, so that no start waits for it. */
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
      // A failed compression (out of memory) is tried again at the next request.
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

/** The best encoding that an `Accept-Encoding` allows (RFC 9110, 12.5.3); identity when it names none of ours. */
export function chooseEncoding(acceptEncoding: string | undefined): Encoding {
  const accepted = new Set(
    (acceptEncoding ?? '').split(',').flatMap((item) => {
      const [name = '', ...params] = item.split(';').map((part) => part.trim().toLowerCase());
      return params.some((param) => /^q=0(\.0{0,3})?$/.test(param)) ? [] : [name];
    }),
  );
  return ENCODINGS.find((encoding) => accepted.has(encoding)) ?? 'identity';
}

/** Sends a text in the encoding that the client accepts, or 304 when the client has it already. */
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
