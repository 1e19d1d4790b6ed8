import { afterEach, beforeEach } from 'vitest';
import { type AllSources, catalogue } from '../../../src/catalogue/catalogue.ts';
import { parseParams } from '../../../src/catalogue/params.ts';
import { listedPath } from '../../../src/catalogue/paths.ts';
import { type NamesWorld, serveFixtures, startNames } from './names.ts';
import { PATIENT_MS } from './patience.ts';

/** A fresh world for each test of the file, with the hand-written fixtures in place. */
export function useNames(): () => NamesWorld {
  let world: NamesWorld | undefined;
  beforeEach(async () => {
    world = await startNames();
    serveFixtures(world);
  });
  afterEach(async () => {
    await world?.stop();
  });
  return () => {
    if (!world) throw new Error('only inside a test');
    return world;
  };
}

/** One call as the service makes it. Parameters are checked strictly, and the reply against its published schema. */
export async function ask<T = Record<string, unknown>>(
  world: Pick<NamesWorld, 'sources'>,
  path: string,
  query: Record<string, string>,
): Promise<T> {
  const endpoint = catalogue.find((candidate) => listedPath(candidate) === `/v1/paid${path}`);
  if (!endpoint) throw new Error(`no such path: ${path}`);
  // The sources of other families are missing, so an endpoint that asks one of them fails.
  const sources = world.sources as unknown as AllSources;
  const reply = await endpoint.run(parseParams(endpoint, query), sources, AbortSignal.timeout(PATIENT_MS));
  return endpoint.result.parse(reply) as T;
}
