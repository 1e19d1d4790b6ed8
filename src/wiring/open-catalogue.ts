import { catalogue as everything } from '../catalogue/catalogue.ts';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { type Offered, offeredCatalogue } from '../catalogue/offered.ts';
import { type Config, ConfigError } from '../config.ts';
import type { Sources } from '../endpoints/sources.ts';

/**
 * Returns the catalogue as this configuration offers it: the one list that every surface is made of. Throws
 * ConfigError with every fault of PRICES and ROUTES_OFF.
 */
export function openCatalogue(
  config: Pick<Config, 'offers'>,
  declared: readonly Endpoint<Sources>[] = everything,
): Offered<Endpoint<Sources>> {
  const offered = offeredCatalogue(declared, config.offers);
  if (offered.problems.length > 0) throw new ConfigError(offered.problems);
  return offered;
}
