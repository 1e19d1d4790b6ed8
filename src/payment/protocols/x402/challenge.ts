import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../../../catalogue/endpoint.ts';
import { listedPath } from '../../../catalogue/paths.ts';
import { pathAndQuery } from '../../../lib/request-target.ts';
import { IDENTIFIER_EXTENSION } from '../../payment-identifier.ts';
import { bazaarExtension } from './bazaar.ts';

/** Longer resource URLs lose their query, so that the header stays far below what proxies accept (4-8 KiB). */
const MAX_RESOURCE_URL = 1024;

/**
 * Prepares the PAYMENT-REQUIRED header of an endpoint. Everything except the resource URL and the error is serialised once. The returned function
 * makes the header's value for a request target. With `accepts`, it offers these entries to one buyer in place of the prepared ones.
 */
export function createChallenge(
  endpoint: Endpoint<never>,
  accepts: readonly PaymentRequirements[],
  publicOrigin: string,
): (target: string, error?: string, accepts?: readonly PaymentRequirements[]) => string {
  const extensions = JSON.stringify({ ...IDENTIFIER_EXTENSION, ...bazaarExtension(endpoint) });
  const about = `,"description":${JSON.stringify(endpoint.summary)},"mimeType":"application/json"}`;
  const tailFor = (entries: readonly PaymentRequirements[]) =>
    Buffer.from(`${about},"accepts":${JSON.stringify(entries)},"extensions":${extensions}}`, 'utf8').toString('base64');
  const prepared = tailFor(accepts);
  const listed = listedPath(endpoint);

  function challenge(target: string, error = 'Payment required', tail = prepared): string {
    const url = resourceUrl(publicOrigin, listed, target);
    const head = `{"x402Version":2,"error":${JSON.stringify(error)},"resource":{"url":${JSON.stringify(url)}`;
    // Spaces before a comma have no meaning in JSON. They extend the head to a multiple of three bytes, so that its base64 has no padding and the
    // prepared tail can follow.
    const blanks = '  '.slice(0, (3 - (Buffer.byteLength(head) % 3)) % 3);
    return Buffer.from(head + blanks, 'utf8').toString('base64') + tail;
  }

  const plain = challenge(listed);
  return (target, error, entries) => {
    if (entries) return challenge(target, error, tailFor(entries));
    return error === undefined && target === listed ? plain : challenge(target, error);
  };
}

/** The configured origin with the request's path and query. Neither a Host header nor an absolute-form target changes the origin. */
function resourceUrl(origin: string, listed: string, target: string): string {
  const path = pathAndQuery(target) ?? listed;
  if (path.length <= MAX_RESOURCE_URL) return `${origin}${path}`;
  return `${origin}${path.split('?', 1)[0]?.slice(0, MAX_RESOURCE_URL) ?? listed}`;
}
