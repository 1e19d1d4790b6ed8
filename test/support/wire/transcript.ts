import { exchange, headerIn, type RawAnswer, type Sent } from './exchange.ts';
import { layJson, type Shown } from './json-layout.ts';
import { createPlaceholders } from './placeholders.ts';

/** Headers that differ between two runs. */
const CHANGING: Readonly<Record<string, string>> = { date: '<date>', 'x-request-id': '<request id>' };
const PAYMENT_HEADER = /^payment-(required|response|receipt)$/;
/** A longer header value is shown once in a transcript. */
const SHOWN_ONCE = 80;

/**
 * Records traffic as text for reviewers: each answer with its headers in order, its decoded payment headers and its body.
 * Everything is byte for byte, except placeholders. Addresses and hashes in `constants` are shown as they are.
 */
export function createTranscript(constants: string) {
  const placeholders = createPlaceholders(constants);
  const shown: Shown = new Map();
  const blocks: string[] = [];
  const json = (text: string, where: string) => layJson(placeholders.apply(text), shown, where);

  function headLine([name, value]: RawAnswer['head'][number], answer: RawAnswer, title: string): string {
    const key = name.toLowerCase();
    const { body } = answer;
    if (PAYMENT_HEADER.test(key)) return `${name}: ${decodedHeader(value, title)}`;
    if (key === 'content-length') return `${name}: ${lengthIn(answer, value)}`;
    if (key === 'etag' && placeholders.apply(body) !== body) return `${name}: <of a body that changes>`;
    return `${name}: ${CHANGING[key] ?? shownOnce(placeholders.apply(value), title)}`;
  }

  function decodedHeader(value: string, title: string): string {
    const form = (['base64', 'base64url'] as const).find((one) => Buffer.from(value, one).toString(one) === value);
    if (!form) return placeholders.apply(value);
    const bytes = Buffer.from(value, form);
    return `${form} of ${json(bytes.toString('utf8'), title)}`;
  }

  function shownOnce(value: string, title: string): string {
    const before = shown.get(value);
    if (before !== undefined) return `<as in: ${before}>`;
    if (value.length >= SHOWN_ONCE) shown.set(value, title);
    return value;
  }

  function note(title: string, text: string): void {
    blocks.push(`## ${title}\n${text}\n`);
  }

  function noteAnswer(title: string, line: string, answer: RawAnswer): void {
    const { status, reason, body } = answer;
    const lines = answer.head.map((header) => headLine(header, answer, title));
    const bodyText = /^[{[]/.test(body) ? json(resultOnce(body), title) : placeholders.apply(body);
    note(title, [`> ${line}`, `${status} ${reason}`, ...lines, ...(body ? ['', bodyText] : [])].join('\n'));
  }

  return {
    /** Gives a name to one value of this run, from now on. */
    name: placeholders.name,
    /** Adds a text that is the same in each run. */
    note,
    /** Adds a value, laid out as the JSON of an answer. */
    noteJson: (title: string, value: unknown): void => note(title, json(JSON.stringify(value), title)),
    /** Sends a request, adds the answer under its title, and returns it. */
    async ask(title: string, origin: string, path: string, sent: Sent = {}): Promise<RawAnswer> {
      const answer = await exchange(origin, path, sent);
      noteAnswer(title, `${sent.method ?? 'GET'} ${placeholders.apply(path)}`, answer);
      return answer;
    },
    text: (): string => blocks.join('\n'),
  };
}

export type Transcript = ReturnType<typeof createTranscript>;

/** A problem holds the request's id, which grows with the number of requests. The answer to a HEAD has the length of a body that is not sent. */
function lengthIn(answer: RawAnswer, value: string): string {
  if (value === String(Buffer.byteLength(answer.body))) return '<length of the body>';
  if (!headerIn(answer, 'content-type').startsWith('application/problem+json')) return value;
  return `<${Number(value) - headerIn(answer, 'x-request-id').length} and the length of the request id>`;
}

/** The last text of a tool's result repeats its structured content. When both have the same bytes, the text is referred to instead of shown. */
function resultOnce(body: string): string {
  const text = /\{"type":"text","text":("(?:[^"\\]|\\.)*")\}\]/.exec(body)?.[1];
  if (text === undefined || !body.includes(`"structuredContent":${JSON.parse(text)}`)) return body;
  return body.replace(text, () => '"<the bytes of structuredContent>"');
}
