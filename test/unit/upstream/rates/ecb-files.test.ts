import { readFileSync } from 'node:fs';
import { strToU8, zipSync } from 'fflate';
import { describe, expect, test } from 'vitest';
import { readFixingsCsv, readFixingsXml, readFixingsZip, UnreadableFile } from '../../../../src/upstream/rates/ecb.ts';

const text = (name: string) => readFileSync(new URL(`../../../fixtures/names/${name}`, import.meta.url), 'utf8');
const csv = text('eurofxref-hist.csv');
const daily = text('eurofxref-daily.xml');

describe('the XML files', () => {
  test('the day and its rates, as published', () => {
    const file = readFixingsXml(daily);
    expect(file.dates).toEqual(['2026-11-19']);
    expect(Object.fromEntries(file.read('2026-11-19')!.rates)).toEqual({
      EUR: '1',
      USD: '1.2500',
      JPY: '187.50',
      GBP: '0.80000',
      IDR: '20000.00',
    });
    expect(file.read('2026-11-18')).toBeNull();
  });

  test('many days, newest first', () => {
    const file = readFixingsXml(text('eurofxref-hist-90d.xml'));
    expect(file.dates).toEqual(['2026-11-19', '2026-11-18', '2026-11-13', '2026-08-24']);
    expect(file.read('2026-11-18')?.rates.get('IDR')).toBe('19990.5');
  });

  test.each<[string, string]>([
    ['cut short', daily.slice(0, -30)],
    ['cut inside a day', daily.slice(0, daily.indexOf('GBP'))],
    ['empty', ''],
    ['a page', '<!doctype html><html><p>Not here<br></html>'],
    ['well-formed, without rates', '<html><head></head><body></body></html>'],
    ['with an impossible day', daily.replace('2026-11-19', '2026-11-31')],
    ['with days out of order', text('eurofxref-hist-90d.xml').replace('2026-11-13', '2026-12-13')],
  ])('refuses one that is %s', (_what, xml) => {
    expect(() => readFixingsXml(xml)).toThrow(UnreadableFile);
  });

  test.each([
    ['a rate of zero', daily.replace('1.2500', '0.0')],
    ['a negative rate', daily.replace('1.2500', '-1.25')],
    ['no number', daily.replace('1.2500', 'N/A')],
    ['a missing rate', daily.replace("rate='1.2500'", '')],
    ['a code that is none', daily.replace('USD', 'US Dollar')],
    ['a day without currencies', daily.replace(/<Cube currency.*\/>/g, '')],
  ])('refuses %s', (_what, xml) => {
    expect(() => readFixingsXml(xml).read('2026-11-19')).toThrow(UnreadableFile);
  });
});

describe('the history', () => {
  test('a row a day; a currency that was not quoted is not in it', () => {
    const file = readFixingsCsv(csv);
    expect(file.dates[0]).toBe('2026-11-19');
    expect(file.dates.at(-1)).toBe('1999-01-04');
    expect([...file.read('2022-12-30')!.rates.keys()]).toEqual(['EUR', 'USD', 'JPY', 'BGN', 'GBP', 'HRK', 'IDR']);
    expect(file.read('2025-12-31')?.rates.has('HRK')).toBe(false);
    expect(file.read('2025-12-25')).toBeNull();
  });

  test('is read out of its zip', () => {
    const zip = zipSync({ 'eurofxref-hist.csv': strToU8(csv) });
    expect(readFixingsZip(zip).read('1999-01-04')?.rates.get('USD')).toBe('1.1789');
  });

  test.each<[string, Uint8Array]>([
    ['nothing', new Uint8Array()],
    ['a page', strToU8('<html></html>')],
    ['a zip that was cut short', zipSync({ 'a.csv': strToU8(csv) }).slice(0, -40)],
    ['a zip of something else', zipSync({ 'readme.txt': strToU8('hello') })],
    ['a zip of another table', zipSync({ 'a.csv': strToU8('FREQ,CURRENCY\nD,AUD\n') })],
    ['a bomb', zipSync({ 'a.csv': new Uint8Array(17 * 1024 * 1024) })],
  ])('refuses %s', (_what, bytes) => {
    expect(() => readFixingsZip(bytes)).toThrow(UnreadableFile);
  });

  test('a row that was cut short is refused when it is asked for', () => {
    const file = readFixingsCsv(csv.slice(0, csv.lastIndexOf(',')));
    expect(() => file.read('1999-01-04')).toThrow(UnreadableFile);
    expect(file.read('1999-01-05')).not.toBeNull();
  });
});
