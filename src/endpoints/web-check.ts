import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { withMembers } from '../errors.ts';
import { sourceSchema } from '../lib/source.ts';
import type { Sources } from './sources.ts';
import {
  describeTls,
  describeUnreached,
  measuredFromField,
  ms,
  redirectsField,
  roundHops,
  sumMs,
  tenths,
  tenthsOrNull,
  tlsSchema,
  unreachedMembers,
} from './web-check-fields.ts';
import { finalUrl, urlParam } from './web-fields.ts';

const securityHeaders = z.strictObject({
  present: z.array(
    z.strictObject({
      name: z.string(),
      value: z.string().meta({ description: 'At most 500 characters of it' }),
      judgement: z.enum(['good', 'weak', 'invalid', 'ignored', 'obsolete']).meta({
        description: 'ignored: browsers ignore it over plain http; obsolete: browsers ignore it everywhere',
      }),
    }),
  ),
  missing: z.array(
    z.strictObject({
      name: z.string(),
      judgement: z.enum(['needed', 'advised', 'optional', 'covered', 'inapplicable']).meta({
        description: 'covered: another header has its effect; inapplicable: it has no effect over plain http',
      }),
    }),
  ),
});

const result = z.strictObject({
  url: z.string().meta({ description: 'The URL that was asked for' }),
  finalUrl,
  status: z.int().meta({ description: 'HTTP status of the last answer, whatever it is' }),
  up: z.boolean().meta({ description: 'true when that status is 200 to 399' }),
  redirects: redirectsField,
  totalMs: ms('From the first look-up to the headers of the last answer; bodies are not read'),
  timings: z
    .strictObject({
      dnsMs: ms('Look-up of the name').nullable().meta({ description: 'Look-up of the name; null for an address' }),
      connectMs: ms('TCP connection'),
      tlsMs: ms('TLS handshake').nullable().meta({ description: 'TLS handshake; null over plain http' }),
      firstByteMs: ms('From the request to the headers of its answer'),
      totalMs: ms('All of them'),
    })
    .meta({ description: 'Of the last hop, over a new connection' }),
  tls: tlsSchema
    .nullable()
    .meta({ description: 'null over plain http. A certificate that is not valid is a 502 that has it too' }),
  securityHeaders,
  measuredFrom: measuredFromField,
  source: sourceSchema,
});

/** How a URL answers, measured from this host. */
export const webCheck = defineEndpoint({
  path: '/web/check',
  access: 'paid',
  priceUsd: '0.002',
  label: 'Web address check',
  summary:
    'HTTP status, redirects, response time by phase, TLS certificate, and security headers with a judgement each, measured from this service. A host that cannot be reached, or has a bad certificate, is 502 and says why. robots.txt is not consulted.',
  params: z.object({ url: urlParam }),
  result,
  problemMembers: unreachedMembers,
  example: {
    params: { url: 'http://example.com/' },
    result: {
      url: 'http://example.com/',
      finalUrl: 'https://example.com/',
      status: 200,
      up: true,
      redirects: [{ url: 'http://example.com/', status: 301, latencyMs: 41.2 }],
      totalMs: 128.4,
      timings: { dnsMs: 1.1, connectMs: 18.3, tlsMs: 39.9, firstByteMs: 27.9, totalMs: 87.2 },
      tls: {
        protocol: 'TLSv1.3',
        issuer: "Let's Encrypt",
        subject: 'example.com',
        validFrom: 1795132800,
        validTo: 1802908800,
        expiresInDays: 89,
      },
      securityHeaders: {
        present: [{ name: 'x-content-type-options', value: 'nosniff', judgement: 'good' }],
        missing: [
          { name: 'content-security-policy', judgement: 'needed' },
          { name: 'strict-transport-security', judgement: 'needed' },
        ],
      },
      measuredFrom: 'https://api.example.com',
      source: { name: 'example.com', url: 'https://example.com/', retrievedAt: 1795199401 },
    },
  },
  async run({ url }, { web }: Pick<Sources, 'web'>, signal) {
    const answer = await web.check(url, signal);
    if ('failure' in answer) throw withMembers(answer.failure, describeUnreached(url, web.measuredFrom, answer));
    const { retrievedAtMs, redirects, totalMs, timings, tls, ...checked } = answer;
    const retrievedAt = Math.floor(retrievedAtMs / 1000);
    const { dnsMs, connectMs, tlsMs, firstByteMs } = timings;
    return {
      url,
      ...checked,
      up: checked.status >= 200 && checked.status < 400,
      redirects: roundHops(redirects),
      totalMs: tenths(totalMs),
      timings: {
        dnsMs: tenthsOrNull(dnsMs),
        connectMs: tenths(connectMs),
        tlsMs: tenthsOrNull(tlsMs),
        firstByteMs: tenths(firstByteMs),
        totalMs: sumMs([dnsMs, connectMs, tlsMs, firstByteMs]),
      },
      tls: describeTls(tls, retrievedAt),
      measuredFrom: web.measuredFrom,
      source: { name: new URL(checked.finalUrl).hostname, url: checked.finalUrl, retrievedAt },
    };
  },
});
