import { unzipSync } from 'fflate';
import { SaxesParser } from 'saxes';
import { isCalendarDate } from '../../lib/clock.ts';
import { type Fixing, isRate } from './fixing.ts';

/** One published file: its days, newest first. */
export interface FixingFile {
  readonly dates: readonly string[];
  /** The day's rates; null for a day that is not in the file. */
  read(date: string): Fixing | null;
}

/** The history of 27 years is 1.5 MB of text. A file of ten times that size is not the ECB's. */
const MAX_UNZIPPED = 16 * 1024 * 1024;

/** The readers below throw this. The message is safe to publish. */
export class UnreadableFile extends Error {}

/**
 * The daily and the 90-day file: `Cube time` elements with a `Cube currency rate` for each currency, per one euro.
 * It is parsed strictly, because a truncated file would otherwise look like one with fewer days.
 */
export function readFixingsXml(text: string): FixingFile {
  const days = new Map<string, Map<string, string>>();
  let day: Map<string, string> | undefined;
  const parser = new SaxesParser({});
  parser.on('error', (error) => {
    throw new UnreadableFile('is no XML', { cause: error });
  });
  parser.on('opentag', ({ name, attributes: { time, currency, rate } }) => {
    if (name !== 'Cube') return;
    if (time !== undefined) {
      day = new Map([['EUR', '1']]);
      days.set(String(time), day);
    } else if (currency !== undefined) {
      day?.set(String(currency), String(rate));
    }
  });
  parser.write(text).close();
  return checked([...days.keys()], (date) => days.get(date));
}

/** The full history: a zip that holds one CSV, a row a day, `N/A` where a currency was not quoted. */
export function readFixingsZip(zip: Uint8Array): FixingFile {
  try {
    const files = unzipSync(zip, {
      filter: ({ name, originalSize }) => name.endsWith('.csv') && originalSize <= MAX_UNZIPPED,
    });
    const [csv] = Object.values(files);
    if (csv) return readFixingsCsv(Buffer.from(csv).toString('utf8'));
  } catch (error) {
    if (error instanceof UnreadableFile) throw error;
    throw new UnreadableFile('is no zip', { cause: error });
  }
  throw new UnreadableFile('holds no history');
}

/** Rows are kept as text and split when they are read: seven thousand days of forty columns would be many small strings. */
export function readFixingsCsv(text: string): FixingFile {
  const [header = '', ...rows] = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const [first, ...codes] = header.split(',');
  if (first !== 'Date') throw new UnreadableFile('has no header');
  const byDate = new Map(rows.map((row) => [row.slice(0, 10), row]));
  return checked([...byDate.keys()], (date) => {
    const cells = byDate.get(date)?.split(',').slice(1);
    if (!cells) return undefined;
    if (cells.length !== codes.length) throw new UnreadableFile('has a row that was cut short');
    const quoted = codes.flatMap((code, at) =>
      code === '' || cells[at] === 'N/A' ? [] : [[code, cells[at] ?? ''] as const],
    );
    return new Map([['EUR', '1'], ...quoted]);
  });
}

/** Throws UnreadableFile unless the file has real days in descending order, and for each day known codes with positive rates. */
function checked(dates: readonly string[], ratesOf: (date: string) => Map<string, string> | undefined): FixingFile {
  if (dates.length === 0) throw new UnreadableFile('holds no rates');
  const orderly = dates.every((date, at) => isCalendarDate(date) && (at === 0 || date < (dates[at - 1] ?? '')));
  if (!orderly) throw new UnreadableFile('has days that are none or out of order');
  return {
    dates,
    read(date) {
      const rates = ratesOf(date);
      if (!rates) return null;
      const sound = rates.size > 1 && [...rates].every(([code, rate]) => /^[A-Z]{3}$/.test(code) && isRate(rate));
      if (!sound) throw new UnreadableFile(`has rates for ${date} that are none`);
      return { date, rates };
    },
  };
}
