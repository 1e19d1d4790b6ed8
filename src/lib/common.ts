import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino';
import type { Clock } from './clock.ts';

// What every part is given first: the clock and the log.

/** What a part says to the operator. Each asks for the levels that it uses. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The first argument of a `createX` or `openX` that needs both. Tests pass the clock and log of their world. */
export interface Common {
  readonly clock: Clock;
  readonly log: Log;
}

/** Fields that no log line may hold, in lower case: proofs of payment, credentials, RPC URLs (paths hold keys). */
const SECRET_KEYS = new Set([
  'payment-signature',
  'x-payment',
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'privatekey',
  'relayerprivatekey',
  'preimage',
  'signature',
  'metricstoken',
  'rpcurls',
  'grpc-metadata-macaroon',
  'macaroon',
  'rune',
  'password',
  'connection',
  'secret',
]);
const REDACTED = '[redacted]';
/** Deeper than any object that is logged on purpose. It limits the walk through foreign ones. */
const MAX_DEPTH = 8;

/** JSON lines on standard output. Secrets are found by name: libraries' errors hold requests of unknown shape. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    // Bindings of a child are written before the formatters see them.
    redact: { paths: [...SECRET_KEYS].map((key) => `["${key}"]`), censor: REDACTED },
    // Errors are plain redacted objects here already, which pino's own serializer must not change.
    serializers: { err: (value: unknown) => value },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (record: Record<string, unknown>) => redact(record) as Record<string, unknown>,
    },
  };
  return destination ? pino(options, destination) : pino(options);
}

function redact(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return '[deep]';
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  // Errors become plain objects first: secrets hide in their fields (a request, a signed payload).
  const plain = value instanceof Error ? { ...stdSerializers.err(value), message: messageOf(value) } : value;
  if (!isPlain(plain)) return String(plain);
  return Object.fromEntries(
    Object.entries(plain).map(([key, item]) => [
      key,
      SECRET_KEYS.has(key.toLowerCase()) ? REDACTED : redact(item, depth + 1),
    ]),
  );
}

/** The messages of an error and its causes. A cause with which the text ends already is not said twice. */
function messageOf(error: Error, depth = 0): string {
  if (!(error.cause instanceof Error) || depth >= MAX_DEPTH) return error.message;
  const cause = messageOf(error.cause, depth + 1);
  const isSaid = error.message.endsWith(error.cause.message);
  return isSaid
    ? error.message.slice(0, error.message.length - error.cause.message.length) + cause
    : `${error.message}: ${cause}`;
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || prototype.constructor?.name === 'Object';
}
