import { describeOpenApi } from './describe-openapi.ts';
import { describeWellKnown } from './describe-well-known.ts';
import type { Entry } from './entry.ts';
import type { Caller } from './market/market-probe.ts';
import { type Description, isComplete, joinDescriptions } from './read-description.ts';

/** Large services describe hundreds of routes in one file. */
const MAX_OPENAPI_BYTES = 2 * 1024 * 1024;
const MAX_WELL_KNOWN_BYTES = 512 * 1024;

/** The options of a request for a document. */
type Asking = Parameters<Caller['readJson']>[2];

/**
 * Completes a 402's description from the documents of its origin. Each is read only while something is missing.
 * The order is the OpenAPI document, then /.well-known/x402. A missing or unusable document counts as one that says nothing.
 */
export async function completeDescription(
  challenged: Description,
  { url, method }: { url: URL; method: Entry['method'] },
  caller: Pick<Caller, 'readJson'>,
  asking: Asking,
): Promise<Description> {
  // No description has a name before this read, because the protocol has none for a route.
  const openApi = await caller.readJson(new URL('/openapi.json', url), MAX_OPENAPI_BYTES, asking);
  const described = joinDescriptions(challenged, describeOpenApi(openApi, url, method));
  if (isComplete(described)) return described;
  const wellKnown = await caller.readJson(new URL('/.well-known/x402', url), MAX_WELL_KNOWN_BYTES, asking);
  return joinDescriptions(described, describeWellKnown(wellKnown, url, method));
}
