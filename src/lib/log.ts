import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino';

/** Lower-case names of what no log line may hold: proofs of payment, credentials, and RPC addresses (their paths carry keys). */
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
/** Deeper than anything we log on purpose; it bounds the walk over objects that are not ours. */
const MAX_DEPTH = 8;

/**
 * The process log: JSON lines on standard output, secrets replaced at any depth of what is logged.
 * Replaced by name and not by path, because errors of libraries carry requests in shapes that we do not choose.
 */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    // Bindings of a child are written before the formatters see them.
    redact: { paths: [...SECRET_KEYS].map((key) => `["${key}"]`), censor: REDACTED },
    // Errors are plain and redacted by then; pino's own serializer would take them for objects that look like errors.
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
  // Errors become plain objects first: their own fields (a request, a signed payload) are where secrets hide.
  const plain = value instanceof Error ? { ...stdSerializers.err(value) } : value;
  if (!isPlain(plain)) return String(plain);
  return Object.fromEntries(
    Object.entries(plain).map(([key, item]) => [
      key,
      SECRET_KEYS.has(key.toLowerCase()) ? REDACTED : redact(item, depth + 1),
    ]),
  );
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || prototype.constructor?.name === 'Object';
}
