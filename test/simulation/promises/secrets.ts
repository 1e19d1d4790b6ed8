import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { World } from '../world/world.ts';
import { readLedgers } from './ledger.ts';
import type { Tell } from './promise.ts';

/** Signatures are looked for in files one by one: so many of them, the newest. */
const MOST_SIGNATURES = 30;
/** Copies that pages which were split may hold. */
const MOST_COPIES = 2;

/** What the service knows and must keep to itself, as text and as bytes. */
function secretsOf({ accounts, lightning, book }: World) {
  const keys = [accounts.relayer.privateKey, accounts.authorizer.privateKey];
  const shown = new Set(book.presentations().map(({ paymentHash }) => paymentHash));
  const preimages = lightning.invoices().filter((one) => one.ours && shown.has(one.paymentHash));
  const signatures = book.presentations().flatMap(({ authorization }) => authorization?.signature ?? []);
  const headers = book.presentations().flatMap(({ request }) => request.headers['payment-signature'] ?? []);
  return {
    headers: new Set(headers),
    always: [
      ...keys.map((bytes, at) => ({ name: at === 0 ? 'the relayer’s key' : 'the authorizer’s key', bytes })),
      ...preimages.map(({ preimage }) => ({ name: 'a preimage', bytes: Buffer.from(preimage, 'hex') })),
    ],
    signatures: signatures.filter(({ length }) => length === 65),
  };
}

/** What could be a secret in a text, once each: all hex of at least a hash's length, all base64 of at least a header's. */
function suspectsIn(text: string): { readonly hex: string; readonly base64: ReadonlySet<string> } {
  const all = (pattern: RegExp): Set<string> => new Set(text.match(pattern) ?? []);
  // Each run is looked at from its beginning alone: from every character of one that is too short takes many times as long.
  const hex = [...all(/(?<![0-9a-f])[0-9a-f]{64,}/gi)].join(' ').toLowerCase();
  return { hex, base64: all(/(?<![\w+/-])[\w+/-]{100,}={0,2}/g) };
}

/** No answer and no line of the log holds a secret, or a signature. */
export function checkTexts(world: World, tell: Tell): void {
  const { always, signatures, headers } = secretsOf(world);
  const all = [...always, ...signatures.map((bytes) => ({ name: 'a signature', bytes }))];
  const places = {
    'an answer': suspectsIn(world.answers.map(({ text }) => text).join('\n')),
    'the log': suspectsIn(world.log.lines().join('\n')),
  };
  for (const [place, { hex, base64 }] of Object.entries(places)) {
    for (const header of headers) if (base64.has(header)) tell('no secret leaves', `a payment’s header is in ${place}`);
    for (const { name, bytes } of all)
      if (hex.includes(bytes.toString('hex'))) tell('no secret leaves', `${name} is in ${place}`);
  }
}

/**
 * No file holds a key or a preimage, and the signature of what has ended is gone from them. Asked when every connection is closed.
 * When SQLite moves a row to another page it leaves a copy in the old one's free space, which its `secure_delete` does not reach: few remain so.
 */
export function checkFiles(world: World, tell: Tell): void {
  const { always, signatures } = secretsOf(world);
  const open = new Set(
    readLedgers(world).flatMap(({ sales }) =>
      sales.flatMap(({ signature }) => (signature ? [Buffer.from(signature).toString('hex')] : [])),
    ),
  );
  const ended = signatures.filter((bytes) => !open.has(bytes.toString('hex'))).slice(-MOST_SIGNATURES);
  for (const file of filesOf(world)) {
    const content = readFileSync(file);
    for (const { name, bytes } of always)
      if (content.includes(bytes) || content.includes(bytes.toString('hex')))
        tell('no secret leaves', `${name} is in ${file}`);
    const left = new Set(ended.filter((bytes) => content.includes(bytes) || content.includes(bytes.toString('hex'))));
    if (left.size > MOST_COPIES) tell('no secret leaves', `${left.size} signatures of what has ended are in ${file}`);
  }
}

function filesOf({ folder, instances }: World): string[] {
  const folders = instances.map(({ name }) => join(folder, name));
  const inside = folders.flatMap((dir) => readdirSync(dir).map((file) => join(dir, file)));
  return inside.filter((file) => existsSync(file));
}
