import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { isCalendarDate } from '../../../src/lib/clock.ts';
import type { PaymentState } from '../../../src/store/ports/payments.ts';
import { UsageError } from './operator-command.ts';

/** An operator's command. `from` is inclusive and `to` exclusive, in Unix milliseconds. */
export type LedgerCommand = { readonly dataDir: string | undefined } & (
  | { readonly name: 'status'; readonly json: boolean }
  | { readonly name: 'list'; readonly state: PaymentState | null; readonly limit: number; readonly json: boolean }
  | { readonly name: 'reconcile'; readonly timeoutMs: number }
  | { readonly name: 'claim'; readonly timeoutMs: number }
  | { readonly name: 'export'; readonly from: number; readonly to: number }
  /** `from` is a file, and `to` a database. Undefined means the service's own. */
  | { readonly name: 'copy'; readonly from: string | undefined; readonly to: string | undefined }
  | { readonly name: 'providers' }
  | { readonly name: 'accept-mismatch' }
  /** `host` as `providers` lists it. */
  | { readonly name: 'trust'; readonly host: string }
);

const STATES: readonly PaymentState[] = ['reserved', 'settling', 'unknown', 'settled', 'failed'];
const DAY_MS = 86_400_000;
const MAX_LIMIT = 100_000;
const MAX_TIMEOUT_SECONDS = 86_400;

const COMMON = { 'data-dir': { type: 'string' }, help: { type: 'boolean', default: false } } as const;
const JSON_OPTION = { json: { type: 'boolean', default: false } } as const;

/** Reads a command, or returns null for help. Throws UsageError for anything that the usage does not describe. */
export function readLedgerCommand(args: readonly string[]): LedgerCommand | null {
  const [name, ...rest] = args;
  if (name === '--help') return null;
  switch (name) {
    case 'status':
      return readStatus(rest);
    case 'list':
      return readList(rest);
    case 'reconcile':
    case 'claim':
      return readTimed(name, rest);
    case 'export':
      return readExport(rest);
    case 'copy':
      return readCopy(rest);
    case 'providers':
    case 'accept-mismatch':
      return readPlain(name, rest);
    case 'trust':
      return readTrust(rest);
    default:
      throw new UsageError(name === undefined ? 'a command is needed' : `unknown command: ${name}`);
  }
}

function readStatus(args: string[]): LedgerCommand | null {
  const values = parse(args, { ...COMMON, ...JSON_OPTION });
  return values.help ? null : { name: 'status', dataDir: values['data-dir'], json: values.json };
}

function readList(args: string[]): LedgerCommand | null {
  const options = { state: { type: 'string' }, limit: { type: 'string', default: '50' } } as const;
  const values = parse(args, { ...COMMON, ...JSON_OPTION, ...options });
  if (values.help) return null;
  const state = STATES.find((one) => one === values.state) ?? null;
  if (values.state !== undefined && state === null) throw new UsageError(`--state is one of ${STATES.join(', ')}`);
  const limit = whole(values.limit, '--limit', MAX_LIMIT);
  return { name: 'list', dataDir: values['data-dir'], state, limit, json: values.json };
}

function readTimed(name: 'reconcile' | 'claim', args: string[]): LedgerCommand | null {
  const values = parse(args, { ...COMMON, timeout: { type: 'string', default: '120' } });
  if (values.help) return null;
  const timeoutMs = whole(values.timeout, '--timeout', MAX_TIMEOUT_SECONDS) * 1000;
  return { name, dataDir: values['data-dir'], timeoutMs };
}

function readExport(args: string[]): LedgerCommand | null {
  const options = {
    csv: { type: 'boolean', default: false },
    from: { type: 'string' },
    to: { type: 'string' },
  } as const;
  const values = parse(args, { ...COMMON, ...options });
  if (values.help) return null;
  if (!values.csv) throw new UsageError('export needs --csv, the only format');
  const from = values.from === undefined ? 0 : dayStart(values.from, '--from');
  const to = values.to === undefined ? Number.MAX_SAFE_INTEGER : dayStart(values.to, '--to') + DAY_MS;
  if (from >= to) throw new UsageError('--from is after --to');
  return { name: 'export', dataDir: values['data-dir'], from, to };
}

function readCopy(args: string[]): LedgerCommand | null {
  const values = parse(args, { ...COMMON, from: { type: 'string' }, to: { type: 'string' } });
  if (values.help) return null;
  if (values.from !== undefined && values['data-dir'] !== undefined)
    throw new UsageError('--from names the file, so --data-dir cannot be given too');
  return { name: 'copy', dataDir: values['data-dir'], from: values.from, to: values.to };
}

function readPlain(name: 'providers' | 'accept-mismatch', args: string[]): LedgerCommand | null {
  const values = parse(args, COMMON);
  return values.help ? null : { name, dataDir: values['data-dir'] };
}

function readTrust([host, ...args]: string[]): LedgerCommand | null {
  const isOption = host === undefined || host.startsWith('-');
  const values = parse(isOption && host !== undefined ? [host, ...args] : args, COMMON);
  if (values.help) return null;
  if (isOption) throw new UsageError('trust needs the host of a provider first, as `providers` lists it');
  return { name: 'trust', dataDir: values['data-dir'], host };
}

function parse<const T extends ParseArgsOptionsConfig>(args: string[], options: T) {
  try {
    return parseArgs({ args, options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function whole(text: string, option: string, max: number): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > max) throw new UsageError(`${option} is a whole number from 1 to ${max}`);
  return value;
}

/** The first millisecond of a UTC day. */
function dayStart(text: string, option: string): number {
  if (!isCalendarDate(text)) throw new UsageError(`${option} is a date, YYYY-MM-DD`);
  return Date.parse(`${text}T00:00:00Z`);
}
