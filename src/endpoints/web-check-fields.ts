import { z } from 'zod';
import type { Reached, TlsFacts } from '../upstream/guard/dial.ts';
import type { UnreachedUrl } from '../upstream/web/web.ts';

const DAY_SECONDS = 86_400;

export const ms = (description: string) => z.number().nonnegative().meta({ description });
const msOrNull = (description: string) => z.number().nonnegative().nullable().meta({ description });

export const redirectsField = z
  .array(z.strictObject({ url: z.string(), status: z.int(), latencyMs: ms('From its look-up to its headers') }))
  .meta({ description: 'The answers that led elsewhere, in order, at most 5' });

export const tlsSchema = z.strictObject({
  protocol: z.string(),
  issuer: z.string().nullable().meta({ description: 'Organisation that issued the certificate' }),
  subject: z.string().nullable().meta({ description: 'Name that the certificate was issued to' }),
  validFrom: z.int().nullable().meta({ description: 'Unix seconds from which the certificate is valid' }),
  validTo: z.int().nullable().meta({ description: 'Unix seconds at which the certificate expires' }),
  expiresInDays: z
    .int()
    .nullable()
    .meta({ description: 'Whole days until then, rounded down; negative once it has expired' }),
});

export const measuredFromField = z.string().meta({ description: 'The service that measured' });

/** What the problem of a URL that does not answer has beside the members of every problem. */
export const unreachedMembers = z.object({
  up: z.literal(false).nullable().meta({
    description: 'null when the cause may be on the side of this service, such as its name server or its lack of IPv6',
  }),
  reason: z.string().meta({ description: 'Why it does not answer' }),
  phase: z.enum(['dns', 'connect', 'tls', 'request', 'redirects']).meta({
    description:
      'The step that failed. request: sent, but its answer did not come; redirects: each step succeeded, but there were more than 5 redirects',
  }),
  url: z.string().meta({ description: 'The URL that was asked for' }),
  failedUrl: z.string().meta({ description: 'The URL that failed: `url`, or where its redirects led' }),
  redirects: redirectsField.meta({
    description: 'The answers that led elsewhere, in order: at most 5, and the one too many',
  }),
  totalMs: ms('From the first look-up to the failure'),
  timings: z
    .object({
      dnsMs: msOrNull('Look-up of the name; null for an address'),
      connectMs: msOrNull('TCP connection'),
      tlsMs: msOrNull('TLS handshake; null over plain http'),
      firstByteMs: msOrNull('From the request to the failure'),
      totalMs: ms('All of them'),
    })
    .meta({
      description:
        'Of the URL that failed. The step that failed is measured until the failure; a step that was not reached is null',
    }),
  tls: tlsSchema.nullable().meta({ description: 'The certificate as it was sent, valid or not; null when none came' }),
  certificateError: z.string().nullable().meta({
    description:
      "OpenSSL's name of what is wrong with the certificate, for example CERT_HAS_EXPIRED; null when nothing is",
  }),
  measuredFrom: measuredFromField,
  checkedAt: z.int().meta({ description: 'Unix seconds' }),
});

/** The members of the problem, of a URL that was asked for at `url`. */
export function describeUnreached(
  url: string,
  measuredFrom: string,
  { reason, mayBeOurs, reached, retrievedAtMs }: UnreachedUrl,
) {
  const checkedAt = Math.floor(retrievedAtMs / 1000);
  const members: z.output<typeof unreachedMembers> = {
    up: mayBeOurs ? null : false,
    reason,
    phase: reached.phase ?? 'redirects',
    url,
    failedUrl: reached.url,
    redirects: roundHops(reached.hops),
    totalMs: tenths(reached.totalMs),
    timings: roundPhases(reached.phaseMs),
    tls: describeTls(reached.tls, checkedAt),
    certificateError: reached.certificateFault,
    measuredFrom,
    checkedAt,
  };
  return members;
}

export function describeTls(tls: TlsFacts | null, at: number): z.output<typeof tlsSchema> | null {
  if (tls === null) return null;
  const { protocol, issuer, subject, validFrom, validTo } = tls;
  const expiresInDays = validTo === null ? null : Math.floor((validTo - at) / DAY_SECONDS);
  return { protocol, issuer, subject, validFrom, validTo, expiresInDays };
}

export function roundHops(hops: Reached['hops']) {
  return hops.map((hop) => ({ ...hop, latencyMs: tenths(hop.latencyMs) }));
}

function roundPhases({ dns, connect, tls, request }: Reached['phaseMs']) {
  const [dnsMs, connectMs, tlsMs, firstByteMs] = [dns, connect, tls, request].map(tenthsOrNull) as PhaseMs;
  return { dnsMs, connectMs, tlsMs, firstByteMs, totalMs: sumMs([dns, connect, tls, request]) };
}
type PhaseMs = [number | null, number | null, number | null, number | null];

/** The sum of the steps, where null is a step that was not needed. */
export function sumMs(steps: readonly (number | null)[]): number {
  return tenths(steps.reduce<number>((sum, step) => sum + (step ?? 0), 0));
}

/** Rounds to tenths, because finer differences are noise. */
export function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}

export function tenthsOrNull(value: number | null): number | null {
  return value === null ? null : tenths(value);
}
