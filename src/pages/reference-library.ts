import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Encoded } from './encodings.ts';

const require = createRequire(import.meta.url);
const FILE = require.resolve('swagger-ui-dist/swagger-ui-bundle.js');

/** Within a tenth of the best that brotli can do, for a twentieth of the time. */
const QUALITY = 9;

/** The library that draws the reference. */
export interface LibraryFile {
  /** Where it is served; changes with the bytes. */
  readonly path: string;
  /** The file ready to be sent. */
  encoded(): Promise<Encoded>;
}

/** Opens the library. It is compressed once, when it is first asked for and beside the event loop: with over a megabyte of it no start should wait. */
export function openLibrary(): LibraryFile {
  const bytes = readFileSync(FILE);
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 16);
  let made: Promise<Encoded> | undefined;
  return {
    path: `/assets/swagger-ui.${hash}.js`,
    encoded: () => {
      made ??= compress(bytes, hash);
      return made;
    },
  };
}

async function compress(bytes: Buffer, hash: string): Promise<Encoded> {
  const params = { [constants.BROTLI_PARAM_QUALITY]: QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const [br, gz] = await Promise.all([promisify(brotliCompress)(bytes, { params }), promisify(gzip)(bytes)]);
  return {
    contentType: 'text/javascript; charset=utf-8',
    hash,
    forms: {
      br: { bytes: br, etag: `"${hash}-br"` },
      gzip: { bytes: gz, etag: `"${hash}-gz"` },
      identity: { bytes, etag: `"${hash}"` },
    },
  };
}
