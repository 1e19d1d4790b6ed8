import { deflateSync } from 'node:zlib';

/** An object of a PDF: its text, or the members of a stream's dictionary with the stream's bytes. */
export type PdfObject = string | readonly [dictionary: string, bytes: Uint8Array | string];

const latin = (text: string) => Buffer.from(text, 'latin1');

/** A PDF of these objects, numbered from 1, with their table and its trailer. The first one is the catalogue. */
export function makePdf(objects: readonly PdfObject[], trailer = ''): Buffer {
  const parts = [latin('%PDF-1.7\n')];
  let length = parts[0]!.length;
  const offsets = objects.map((object, index) => {
    const at = length;
    const part = Buffer.concat([latin(`${index + 1} 0 obj\n`), bodyOf(object), latin('\nendobj\n')]);
    parts.push(part);
    length += part.length;
    return `${String(at).padStart(10, '0')} 00000 n \n`;
  });
  const size = objects.length + 1;
  const table = `xref\n0 ${size}\n0000000000 65535 f \n${offsets.join('')}`;
  parts.push(latin(`${table}trailer<</Size ${size}/Root 1 0 R${trailer}>>\nstartxref\n${length}\n%%EOF`));
  return Buffer.concat(parts);
}

function bodyOf(object: PdfObject): Buffer {
  if (typeof object === 'string') return latin(object);
  const [dictionary, bytes] = object;
  const stream = typeof bytes === 'string' ? latin(bytes) : bytes;
  return Buffer.concat([latin(`<<${dictionary}/Length ${stream.length}>>stream\n`), stream, latin('\nendstream')]);
}

interface OnePage {
  /** Members of the dictionary of the page's content. */
  readonly dictionary?: string;
  /** Objects from number 6 on. */
  readonly more?: readonly PdfObject[];
  /** Resources of the page. The font F1 is object 5. */
  readonly resources?: string;
  readonly trailer?: string;
}

/** A PDF of one page with this content. */
export function onePage(
  content: Uint8Array | string,
  { dictionary = '', more = [], resources = '/Font<</F1 5 0 R>>', trailer = '' }: OnePage = {},
): Buffer {
  const page = `<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<<${resources}>>>>`;
  const objects: PdfObject[] = [
    ...['<</Type/Catalog/Pages 2 0 R/Lang(en-GB)>>', '<</Type/Pages/Kids[3 0 R]/Count 1>>', page],
    [dictionary, content] as const,
    '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>',
    ...more,
  ];
  return makePdf(objects, trailer);
}

/** The content of a page with these lines, 14 points apart. */
export function showLines(lines: readonly string[]): string {
  return `BT /F1 12 Tf 72 760 Td ${lines.map((line) => `(${line}) Tj 0 -14 Td`).join(' ')} ET`;
}

/** Compressed once, or several times over. */
export function flate(bytes: Buffer, times = 1): Buffer {
  return times === 0 ? bytes : flate(deflateSync(bytes, { level: 9 }), times - 1);
}
