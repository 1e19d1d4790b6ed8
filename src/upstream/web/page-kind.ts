/** How a body is read. A body of another kind is not read. */
export type PageKind = 'html' | 'xhtml' | 'text' | 'markdown' | 'pdf' | 'json';

const KINDS: Record<string, PageKind> = {
  'text/html': 'html',
  'application/xhtml+xml': 'xhtml',
  'text/plain': 'text',
  'text/markdown': 'markdown',
  'application/pdf': 'pdf',
  'application/x-pdf': 'pdf',
  'application/json': 'json',
  'text/json': 'json',
};

/** The bytes that browsers look at (WHATWG MIME Sniffing, 5.2). */
const SNIFFED_BYTES = 1445;
const PDF_MARK = Buffer.from('%PDF-');

/** The kind by the header; without a header by the first bytes, as in the MIME Sniffing Standard. With `bytes` null (not read yet) and no header it is html. */
export function kindOfPage(contentType: string | null, bytes: Uint8Array | null): PageKind | 'other' {
  if (contentType !== null) {
    const type = (contentType.split(';')[0] ?? '').trim().toLowerCase();
    // RFC 6839: a structured syntax, such as JSON for Linked Data or for geography.
    return KINDS[type] ?? (type.endsWith('+json') ? 'json' : 'other');
  }
  if (bytes === null) return 'html';
  const head = Buffer.from(bytes.subarray(0, SNIFFED_BYTES));
  if (head.subarray(0, PDF_MARK.length).equals(PDF_MARK)) return 'pdf';
  if (head.includes(0) && !hasWideMark(head)) return 'other';
  return /<(!doctype html|html|head|body|title|h1|p|div|a|script|!--)[\s>]/i.test(head.toString('latin1'))
    ? 'html'
    : 'text';
}

/** The byte order marks of UTF-16, whose ASCII is full of zero bytes. */
function hasWideMark(head: Buffer): boolean {
  return (head[0] === 0xfe && head[1] === 0xff) || (head[0] === 0xff && head[1] === 0xfe);
}
