import { randomBytes } from 'node:crypto';
import type { ProtocolsConfig } from '../config/protocols.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import type { ServiceKeyStore } from '../store/ports/service-keys.ts';
import { refusingSecond, withAuthSchemes } from './auth-schemes.ts';
import type { ChallengeSecrets } from './challenge-secrets.ts';
import type { PreparedProtocol, QuotedProtocol, ToolProtocol } from './protocol.ts';
import { createL402 } from './protocols/l402/l402.ts';
import { createMppEvm } from './protocols/mpp/evm.ts';
import { createMppLightning } from './protocols/mpp/lightning.ts';
import { x402Http } from './protocols/x402/http.ts';
import { x402Tool } from './protocols/x402/tool.ts';

/** The name of the ledger's key, and its length in bytes. */
const KEY = 'challenges';
const KEY_BYTES = 32;

/** The protocol of the routes that are paid in USDC. */
export const usdcProtocol: PreparedProtocol & QuotedProtocol = refusingSecond(x402Http);

/** The protocol that priced tools speak. */
export const toolProtocol: ToolProtocol = x402Tool;

/** The protocols that need a key: those of the Lightning routes, which are always on, and MPP's `evm`. */
export interface Protocols {
  readonly lightning: QuotedProtocol;
  /** Of the routes that are paid in USDC by MPP; null where they are off. */
  readonly mpp: PreparedProtocol | null;
}

/** Opens the protocols. Their challenges are signed by the same key on every instance. */
export async function openProtocols(config: ProtocolsNeeds, keys: ServiceKeyStore, clock: Clock): Promise<Protocols> {
  const secrets = await readSecrets(config.protocols, keys);
  const realm = new URL(config.publicOrigin).host;
  return {
    lightning: lightningProtocol(secrets, realm, clock),
    mpp: config.protocols.mpp ? createMppEvm({ secrets, realm, clock }) : null,
  };
}

type ProtocolsNeeds = Pick<Config, 'protocols' | 'publicOrigin'>;

/**
 * Reads what signs challenges: the configured secret, else a key of the ledger, which is made at the first start. What the ledger's key has signed stays
 * good after the first secret is configured.
 */
export async function readSecrets(
  config: Pick<ProtocolsConfig, 'secret' | 'previousSecret'>,
  keys: ServiceKeyStore,
): Promise<ChallengeSecrets> {
  const { secret, previousSecret } = config;
  const ofLedger = await keys.keep(KEY, randomBytes(KEY_BYTES));
  const previous = previousSecret === null ? null : Buffer.from(previousSecret, 'utf8');
  if (secret === null) return { current: ofLedger, previous };
  return { current: Buffer.from(secret, 'utf8'), previous: previous ?? ofLedger };
}

/**
 * The protocols of the routes that are paid over Lightning: three spellings of one invoice and one proof. Most L402 clients read the first line of
 * WWW-Authenticate only, so L402 stands before `Payment`.
 */
export function lightningProtocol(secrets: ChallengeSecrets, realm: string, clock: Clock): QuotedProtocol {
  return withAuthSchemes(x402Http, [createL402(secrets, clock), createMppLightning(secrets, realm)]);
}
