import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../../../catalogue/endpoint.ts';
import { listedPath } from '../../../catalogue/paths.ts';
import type { Config } from '../../../config.ts';
import { pathAndQuery } from '../../../lib/request-target.ts';
import { USDC_DOMAIN } from '../../evm/token.ts';
import { IDENTIFIER_EXTENSION } from '../../payment-identifier.ts';
import { gatewayRequirement } from '../../rails/usdc-gateway/payload.ts';
import { PaymentRefused } from '../../refusal.ts';
import { bazaarExtension } from './bazaar.ts';
import type { Envelope } from './header.ts';

/** 7 days and 100 seconds: the interface document's, and what Circle's batched payments need. */
const MAX_TIMEOUT_SECONDS = 604_900;
/** Longer resource URLs are told without their query, so that the header stays far below what proxies take (4-8 KiB). */
const MAX_RESOURCE_URL = 1024;

/** What a payment must be made out to on the configured chain. */
export interface Terms {
  readonly network: `eip155:${number}`;
  readonly usdc: `0x${string}`;
  readonly payTo: `0x${string}`;
  readonly publicOrigin: string;
  /** The contract to sign for on the Gateway's rail; null where it is not offered. */
  readonly gatewayWallet: `0x${string}` | null;
}

/** The terms that a configuration names. */
export function termsOf({ network, seller, publicOrigin, rails }: TermsConfig): Terms {
  const { caip2, usdc } = network;
  return { network: caip2, usdc, payTo: seller, publicOrigin, gatewayWallet: rails.gateway?.wallet ?? null };
}

type TermsConfig = Pick<Config, 'network' | 'seller' | 'publicOrigin' | 'rails'>;

/** One priced route's side of every payment: prepared at start, so that a 402 costs little more than its bytes. */
export interface Offer {
  /** The plain one, from which each rail's entry is made. */
  readonly requirement: PaymentRequirements;
  /** Every way to pay in USDC, the plain one first. */
  readonly accepts: readonly PaymentRequirements[];
  readonly price: bigint;
  /** The header value of a 402 for this request target. */
  challenge(target: string, error?: string): string;
}

/** Prepares the challenge of a priced endpoint: everything except the resource URL is serialised once. */
export function createOffer(endpoint: Endpoint<never>, terms: Terms): Offer {
  if (!endpoint.price) throw new Error(`${endpoint.path} has no price`);
  const requirement: PaymentRequirements = {
    scheme: 'exact',
    network: terms.network,
    amount: endpoint.price.units.toString(),
    asset: terms.usdc,
    payTo: terms.payTo,
    maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    extra: { ...USDC_DOMAIN, assetTransferMethod: 'eip3009' },
  };
  const { gatewayWallet } = terms;
  const accepts = gatewayWallet ? [requirement, gatewayRequirement(requirement, gatewayWallet)] : [requirement];
  const extensions = JSON.stringify({ ...IDENTIFIER_EXTENSION, ...bazaarExtension(endpoint) });
  const rest = `,"description":${JSON.stringify(endpoint.summary)},"mimeType":"application/json"},"accepts":${JSON.stringify(accepts)},"extensions":${extensions}}`;
  const tail = Buffer.from(rest, 'utf8').toString('base64');
  const listed = listedPath(endpoint);

  function challenge(target: string, error = 'Payment required'): string {
    const url = resourceUrl(terms.publicOrigin, listed, target);
    const head = `{"x402Version":2,"error":${JSON.stringify(error)},"resource":{"url":${JSON.stringify(url)}`;
    // Blanks before a comma say nothing in JSON; with them the head ends where a base64 digit does, and the tail can follow as it is.
    const blanks = '  '.slice(0, (3 - (Buffer.byteLength(head) % 3)) % 3);
    return Buffer.from(head + blanks, 'utf8').toString('base64') + tail;
  }

  const plain = challenge(listed);
  return {
    requirement,
    accepts,
    price: endpoint.price.units,
    challenge: (target, error) => (error === undefined && target === listed ? plain : challenge(target, error)),
  };
}

/** The configured origin with the request's path and query: neither Host nor an absolute-form target can move it. */
function resourceUrl(origin: string, listed: string, target: string): string {
  const path = pathAndQuery(target) ?? listed;
  if (path.length <= MAX_RESOURCE_URL) return `${origin}${path}`;
  return `${origin}${path.split('?', 1)[0]?.slice(0, MAX_RESOURCE_URL) ?? listed}`;
}

/** Refuses a payment whose `accepted` is not the offer's requirement; a client may add to `extra`, never change it. */
export function checkAccepted(accepted: Envelope['accepted'], requirement: PaymentRequirements): void {
  const same = (key: 'scheme' | 'network' | 'amount' | 'maxTimeoutSeconds') => accepted[key] === requirement[key];
  const sameAddress = (key: 'asset' | 'payTo') => lower(accepted[key]) === lower(requirement[key]);
  if (accepted.network !== requirement.network && typeof accepted.network === 'string') {
    throw new PaymentRefused('invalid_exact_evm_network_mismatch');
  }
  const extra = (accepted.extra ?? {}) as Record<string, unknown>;
  const extraHolds =
    typeof extra === 'object' && Object.entries(requirement.extra).every(([key, value]) => extra[key] === value);
  const core = same('scheme') && same('network') && same('amount') && same('maxTimeoutSeconds');
  if (!core || !sameAddress('asset') || !sameAddress('payTo') || !extraHolds) {
    throw new PaymentRefused('No matching payment requirements');
  }
}

function lower(value: unknown): unknown {
  return typeof value === 'string' ? value.toLowerCase() : value;
}
