import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { type Encodable, type Encoded, encodeWhenAsked } from '../http/encodings.ts';

const FOLDER = join(import.meta.dirname, 'assets');
const require = createRequire(import.meta.url);

/** Third-party files that we serve. */
const LIBRARIES: Readonly<Record<string, string>> = {
  'uplot.js': require.resolve('uplot/dist/uPlot.iife.min.js'),
  'uplot.css': require.resolve('uplot/dist/uPlot.min.css'),
  'qr.js': require.resolve('qr'),
};

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
};

/** An import of a neighbouring script, at once or on demand, or of the library `qr`, as the formatter writes it. */
const IMPORT = /(^import |\bfrom |\bawait import\()'(?:\.\/([\w-]+\.js)|(qr))'/gm;

const FILES = new Map(
  [
    ...readdirSync(FOLDER).map((name): [string, string] => [name, join(FOLDER, name)]),
    ...Object.entries(LIBRARIES),
  ].filter(([name]) => extname(name) in CONTENT_TYPES),
);
const byName = new Map<string, string>();
const byPath = new Map<string, Encodable>();
for (const name of FILES.keys()) assetPath(name);

/** The asset at a path, or undefined. */
export async function findAsset(path: string): Promise<Encoded | undefined> {
  return byPath.get(path)?.encoded();
}

/**
 * The path of an asset, which contains a hash of its bytes. Throws for an unknown name, so that no page has a dead link.
 * A file is read once. The scripts that it imports are read first, because its imports must name their hashes.
 * So a cached script never loads another version of its neighbour.
 */
export function assetPath(name: string): string {
  const known = byName.get(name);
  if (known !== undefined) return known;
  const file = FILES.get(name);
  if (file === undefined) throw new Error(`there is no asset ${name}`);
  const extension = extname(name);
  const source = readFileSync(file, 'utf8');
  const text =
    name in LIBRARIES
      ? source
      : source.replace(IMPORT, (_all, from, other, library) => `${from}'${assetPath(other ?? `${library}.js`)}'`);
  const asset = encodeWhenAsked(Buffer.from(text), CONTENT_TYPES[extension] ?? '');
  const path = `/assets/${name.slice(0, -extension.length)}.${asset.hash}${extension}`;
  byName.set(name, path);
  byPath.set(path, asset);
  return path;
}
