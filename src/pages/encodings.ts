import { createHash } from 'node:crypto';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

/** One text in every form in which it can be sent; each form has a strong ETag of its own. */
export interface Encoded {
  readonly contentType: string;
  readonly forms: Readonly<Record<Encoding, { readonly bytes: Buffer; readonly etag: string }>>;
  /** Of the text itself, for names. */
  readonly hash: string;
}

/** In the order in which we like to send them. */
const ENCODINGS = ['br', 'gzip', 'identity'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** How hard brotli tries: 9 is within some percent of the best and thirty times as fast, 4 costs what gzip does. */
const BROTLI = { kept: 9, once: 4 };

/** Compresses a text; `kept` says that it will be sent many times, so that it is worth a few milliseconds. */
export function encode(text: string, contentType: string, effort: keyof typeof BROTLI): Encoded {
  const bytes = Buffer.from(text);
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 16);
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI[effort], [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return {
    contentType,
    hash,
    forms: {
      br: { bytes: brotliCompressSync(bytes, { params }), etag: `"${hash}-br"` },
      gzip: { bytes: gzipSync(bytes), etag: `"${hash}-gz"` },
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
