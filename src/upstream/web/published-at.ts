const MONTH = /\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)/i;
/** A year, a month and a day, in this order. Numbers in another order are ambiguous. */
const NUMERIC = /^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})/;
const ZONE = /(?:\dz|gmt|utc|:\d{2}(?:\.\d+)? ?[+-]\d{2}:?\d{2})(?: \([^)]*\))?$/i;
/** The longest way to write a date. */
const MAX_LENGTH = 64;
/** 2100: a later date is a mistake. */
const LAST_SECONDS = 4_102_444_800;

/** A page's own date as Unix seconds; null for one that is ambiguous, has no day or is none. A time without a zone is taken as UTC, a date as its midnight. */
export function secondsOf(date: string | null | undefined): number | null {
  const text = date?.trim() ?? '';
  const isNumeric = NUMERIC.test(text);
  if (text.length > MAX_LENGTH || !(isNumeric || (MONTH.test(text) && /\d{4}/.test(text)))) return null;
  const ordered = text.replace(NUMERIC, (_all, year, month, day) => `${year}-${two(month)}-${two(day)}`);
  // Node would read a time without a zone in the machine's own.
  const zoned = ZONE.test(ordered) || /^\d{4}-\d{2}-\d{2}$/.test(ordered) ? ordered : `${ordered} UTC`;
  const seconds = Math.floor(Date.parse(zoned.replace(/^(\S{10}T\S+) UTC$/, '$1Z')) / 1000);
  return seconds > 0 && seconds < LAST_SECONDS ? seconds : null;
}

/** A date of PDF (ISO 32000, 7.9.4), for example D:20240102030405+01'00'. Parts after the year may be missing. */
export function secondsOfPdfDate(date: string | null): number | null {
  const found = /^(?:D:)?(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?(?:([+-])(\d{2})'?(\d{2})?)?/.exec(date ?? '');
  if (found === null) return null;
  const [, year, month = '01', day = '01', hour = '00', minute = '00', second = '00', sign, ahead, more = '00'] = found;
  const zone = sign === undefined ? 'Z' : `${sign}${ahead}:${more}`;
  return secondsOf(`${year}-${month}-${day}T${hour}:${minute}:${second}${zone}`);
}

function two(digits: string): string {
  return digits.padStart(2, '0');
}
