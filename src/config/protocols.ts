import { z } from 'zod';

/** How payments are asked for and presented. */
export interface ProtocolsConfig {
  /** Whether the routes that are paid in USDC stand under `/v1/mpp` too, for MPP's method `evm`. */
  readonly mpp: boolean;
  /** Signs challenges. Null: a key that is made once for the ledger, so that every instance has the same. */
  readonly secret: string | null;
  /** What signed challenges before the last change. */
  readonly previousSecret: string | null;
}

const secret = z.string().min(32, 'at least 32 characters');

/** The environment's keys of the protocols. */
export const protocolsEnvironment = {
  MPP: z.enum(['on', 'off'], 'on or off').default('off'),
  MPP_SECRET: secret.optional(),
  MPP_SECRET_PREVIOUS: secret.optional(),
};

type Environment = z.output<z.ZodObject<typeof protocolsEnvironment>>;

/** Builds the protocols' settings. */
export function assembleProtocols(env: Environment): ProtocolsConfig {
  return { mpp: env.MPP === 'on', secret: env.MPP_SECRET ?? null, previousSecret: env.MPP_SECRET_PREVIOUS ?? null };
}
