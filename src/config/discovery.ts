import { z } from 'zod';

/** The source of third parties' entries. */
export interface DiscoveryConfig {
  /** The third-party catalogue's list; null: none is read. */
  readonly catalogueUrl: string | null;
}

/** Circle's Agent Marketplace (developers.circle.com/agent-stack/agent-marketplace/discovery-api): it lists entries on Arc. */
const CIRCLE = 'https://api.circle.com/v2/x402/discovery/resources';
const BY_NETWORK: Record<string, string> = { arc: CIRCLE, 'arc-testnet': CIRCLE };

/** The environment's keys of discovery. */
export const discoveryEnvironment = {
  UPSTREAM_CATALOGUE_URL: z
    .union([z.literal('off'), z.url({ protocol: /^https?$/ })], 'an http or https URL, or off')
    .optional(),
};

/** Builds the settings. On a custom chain no catalogue is read by default, because none lists entries there. */
export function assembleDiscovery(
  env: z.output<z.ZodObject<typeof discoveryEnvironment>>,
  network: string,
): DiscoveryConfig {
  const asked = env.UPSTREAM_CATALOGUE_URL ?? BY_NETWORK[network] ?? 'off';
  return { catalogueUrl: asked === 'off' ? null : asked };
}
