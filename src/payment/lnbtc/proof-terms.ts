import { own } from '../../lib/own-property.ts';
import { isPublicKey } from '../../lib/public-key.ts';
import { type LightningNetwork, lightningNetwork } from './networks.ts';
import type { LnbtcReason } from './proof-reasons.ts';

/** The terms of a payment, read once from an untrusted requirement. */
export interface ProofTerms {
  readonly network: LightningNetwork;
  /** Millisatoshis in decimal, as on the wire. The caller chooses its length, so it is compared as text. */
  readonly amount: string;
  readonly maxTimeoutSeconds: number;
  /** 33 bytes, compressed. */
  readonly payTo: Uint8Array;
}

const AMOUNT = /^[1-9][0-9]*$/;
const PAY_TO = /^[0-9a-f]{66}$/;

/** Keys that were found to be on the curve. Sellers return, and the square root takes a sixteenth of the time of a proof's checks. */
const knownKeys = new Set<string>();
const MAX_KNOWN_KEYS = 1024;

/** Step 2: checks the terms alone, in the scheme's order. `longestTimeout` in seconds. */
export function readTerms(requirement: unknown, longestTimeout: number): ProofTerms | LnbtcReason {
  if (own(requirement, 'scheme') !== 'exact') return 'unsupported_scheme';
  const network = lightningNetwork(own(requirement, 'network'));
  if (!network) return 'unsupported_network';
  if (own(requirement, 'asset') !== 'BTC') return 'invalid_exact_lnbtc_asset';
  const amount = own(requirement, 'amount');
  if (typeof amount !== 'string' || !AMOUNT.test(amount)) return 'invalid_exact_lnbtc_amount';
  const maxTimeoutSeconds = own(requirement, 'maxTimeoutSeconds');
  if (!isTimeout(maxTimeoutSeconds) || maxTimeoutSeconds > longestTimeout) return 'invalid_exact_lnbtc_max_timeout';
  const payTo = readKey(own(requirement, 'payTo'));
  if (!payTo) return 'invalid_exact_lnbtc_pay_to_malformed';
  return { network, amount, maxTimeoutSeconds, payTo };
}

function isTimeout(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function readKey(value: unknown): Uint8Array | null {
  if (typeof value !== 'string' || !PAY_TO.test(value)) return null;
  const key = Buffer.from(value, 'hex');
  if (knownKeys.has(value)) return key;
  if (!isPublicKey(key)) return null;
  if (knownKeys.size >= MAX_KNOWN_KEYS) knownKeys.clear();
  knownKeys.add(value);
  return key;
}
