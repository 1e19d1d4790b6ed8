import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { World } from '../world/world.ts';
import { readLedgers } from './ledger.ts';
import type { Tell } from './promise.ts';

/** Signatures are looked for in files one by one: so many of them, the newest. */
const MOST_SIGNATURES = 30;

/** What the service knows and must keep to itself, as text and as bytes. */
function secretsOf({ accounts, lightning, book }: World) {
  const relayer = accounts.relayer.privateKey;
  const shown = new Set(book.presentations().map(({ paymentHash }) => paymentHash));
  const preimages = lightning.invoices().filter((one) => one.ours && shown.has(one.paymentHash));
  const signatures = book.presentations().flatMap(({ authorization }) => authorization?.signature ?? []);
  const headers = book.presentations().flatMap(({ request }) => request.headers['payment-signature'] ?? []);
  return {
    headers: new Set(headers),
    always: [
      { name: 'the relayer’s key', bytes: relayer },
      ...preimages.map(({ preimage }) => ({ name: 'a preimage', bytes: Buffer.from(preimage, 'hex') })),
    ],
    signatures: signatures.filter(({ length }) => length === 65),
  };
}

/** No answer and no line of the log holds a secret, or a signature. */
export function checkTexts(world: World, tell: Tell): void {
  const { always, signatures, headers } = secretsOf(world);
  const said = world.answers.map(({ text }) => text).join('\n');
  const logged = world.log.lines().join('\n');
  for (const header of headers)
    if (said.includes(header) || logged.includes(header))
      tell('no secret leaves', 'a payment’s header is in an answer or in the log');
  const all = [...always, ...signatures.map((bytes) => ({ name: 'a signature', bytes }))];
  for (const { name, bytes } of all) {
    const text = bytes.toString('hex');
    if (said.includes(text)) tell('no secret leaves', `${name} is in an answer`);
    if (logged.includes(text)) tell('no secret leaves', `${name} is in the log`);
  }
}

/** No file holds a key or a preimage, and the signature of what has ended is gone from them. Asked when every connection is closed. */
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
    for (const bytes of ended)
      if (content.includes(bytes) || content.includes(bytes.toString('hex')))
        tell('no secret leaves', `the signature of what has ended is in ${file}`);
  }
}

function filesOf({ folder, instances, ledger }: World): string[] {
  const folders = instances.map(({ name }) => join(folder, name));
  const inside = folders.flatMap((dir) => readdirSync(dir).map((file) => join(dir, file)));
  return [...inside, ledger.file].filter((file) => existsSync(file));
}
