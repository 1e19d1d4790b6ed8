import { describeOpenApi } from './describe-openapi.ts';
import { describeWellKnown } from './describe-well-known.ts';
import type { Entry } from './entry.ts';
import type { Caller } from './market/market-probe.ts';
import { type Description, isComplete, joinDescriptions } from './read-description.ts';

/** Large services describe hundreds of routes in one file. */
const MAX_OPENAPI_BYTES = 2 * 1024 * 1024;
const MAX_WELL_KNOWN_BYTES = 512 * 1024;

/** How a document of an origin is asked for. */
type Asking = Parameters<Caller['readJson']>[2];

/**
 * Completes what a 402 says of its route from the documents of its origin, one after the other and only while something is missing:
 * the OpenAPI document, then /.well-known/x402. A document that is not there, or is none, is silence.
 */
export async function completeDescription(
  said: Description,
  { url, method }: { url: URL; method: Entry['method'] },
  caller: Pick<Caller, 'readJson'>,
  asking: Asking,
): Promise<Description> {
  // Every description lacks a name before these are read: the protocol has none for a route.
  const openApi = await caller.readJson(new URL('/openapi.json', url), MAX_OPENAPI_BYTES, asking);
  const described = joinDescriptions(said, describeOpenApi(openApi, url, method));
  if (isComplete(described)) return described;
  const wellKnown = await caller.readJson(new URL('/.well-known/x402', url), MAX_WELL_KNOWN_BYTES, asking);
  return joinDescriptions(described, describeWellKnown(wellKnown, url, method));
}
