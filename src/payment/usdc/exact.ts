import type { PaymentRequirements } from '@x402/core/types';
import type { ChainClient } from '../../chain/rpc/client.ts';
import type { Config } from '../../config.ts';
import type { Common } from '../../lib/common.ts';
import { hexToBytes } from '../../lib/hex.ts';
import { USDC_DECIMALS } from '../../lib/units.ts';
import type { Upstreams } from '../../upstream/client/client.ts';
import type { Ledger } from '../ledger.ts';
import type { RailInfo, SignedScheme, UsdcRail } from '../rail.ts';
import { plainReceipt } from '../receipt.ts';
import { NOT_OFFERED, PaymentRefused } from '../refusal.ts';
import { type SaleContext, sellSigned } from '../sale.ts';
import { type Authorization, NONCE_USED, type Settler, type SettlerContext, type SettlerStatus } from '../settler.ts';
import {
  authorizationDigest,
  checkAccepted,
  checkAuthorization,
  MAX_TIMEOUT_SECONDS,
  MOST_VALIDITY_SECONDS,
  neededValidity,
  readSigned,
} from './authorization.ts';
import { createTransferBooks } from './books.ts';
import {
  type ChainCheck,
  type ContractBudget,
  createAuthorizationChecks,
  createSignatureCheck,
  type TokenWatch,
} from './checks.ts';
import type { Evidence } from './evidence.ts';
import {
  createCircleFacilitator,
  createHttpFacilitator,
  createSellerProof,
  type FacilitatorClient,
  probeSupported,
  REMOTE_BOUNDS,
} from './facilitator.ts';
import { createServiceSettler } from './facilitator-settler.ts';
import { domainSeparator, GATEWAY_DOMAIN, USDC_DOMAIN } from './token.ts';

// The rail `usdc-exact`: an authorization of the token itself. What a 402 lists, the checks before a sale, and the
// settlement by our relayer or a facilitator. The chain decides, whoever settles.

const EXACT_EXTRA = { ...USDC_DOMAIN, assetTransferMethod: 'eip3009' };

export interface PayTo {
  readonly network: `eip155:${number}`;
  readonly usdc: `0x${string}`;
  readonly payTo: `0x${string}`;
}

/** The entry of a challenge. `units` in USDC base units. */
export function exactRequirement(units: bigint, { network, usdc, payTo }: PayTo): PaymentRequirements {
  return {
    scheme: 'exact',
    network,
    amount: units.toString(),
    asset: usdc,
    payTo,
    maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    // Some clients cannot show an amount without it, and do not pay.
    extra: { ...EXACT_EXTRA, decimals: USDC_DECIMALS },
  };
}

/** Gas of a lone payment, as it was seen on Arc (docs/benchmarks.md, "What a call costs the seller"). */
const LONE_PAYMENT_GAS = 112_519n;

/** Whether a route of this price is sold for a lone transfer. */
function isSoldAt(price: bigint, { exactFrom }: Config['rails']): boolean {
  return exactFrom !== null && price >= exactFrom;
}

/** Always on, because payments for earlier offers must end. `/readyz` fails while its facilitator's probe does. */
export const exactInfo: RailInfo = {
  name: 'usdc-exact',
  isOn: () => true,
  contract: ({ network }) => network.usdc,
  way: 'usdc',
  takesFromBalance: true,
  requirement: () => (plain) => plain,
  sells: isSoldAt,
  gasOfCall: ({ remote }) => (remote ? 0n : LONE_PAYMENT_GAS),
  service: ({ remote }) => remote && { name: 'facilitator', isVital: true },
};

interface ExactNeeds extends Common {
  config: Config;
  outgoing: { readonly upstreams: Upstreams; readonly userAgent: string };
  sales: SaleContext;
  ledger: Pick<Ledger, 'sumOfOpen' | 'hasSettled'>;
  check: ChainCheck;
  contracts: ContractBudget;
  evidence: Evidence;
  token: TokenWatch;
  chain: ChainClient;
  balanceContracts: readonly Uint8Array[];
}

export function openExact(needs: ExactNeeds, status: SettlerStatus): UsdcRail {
  const { rails, network } = needs.config;
  const { remote } = rails;
  const books = createTransferBooks({ chain: needs.chain, evidence: needs.evidence, usdc: network.usdc });
  const scheme = openScheme(needs, status);
  return {
    info: exactInfo,
    contract: scheme.contract,
    // This rail checks every payment that no other rail recognises.
    recognises: () => true,
    sell: (call, credential) => sellSigned(needs.sales, scheme, call, credential),
    openSettler: (context) => ({
      ...(remote ? openFacilitated(remote, needs, context) : openRelayed(needs.evidence, context)),
      books,
    }),
  };
}

const REASONS = { insufficient: 'invalid_exact_evm_insufficient_balance', used: NONCE_USED };

const OTHER_RAILS =
  'This route is not sold for a lone transfer (scheme exact). Sign for one of the entries that accepts has now.';

function openScheme(needs: ExactNeeds, status: SettlerStatus): SignedScheme {
  const { config, ledger, check, contracts } = needs;
  const { usdc, chainId } = config.network;
  const contract = hexToBytes(usdc);
  const separator = domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, chainId, contract);
  const digestOf = (authorization: Authorization) => authorizationDigest(authorization, separator);
  const validity = { least: neededValidity(config), most: MOST_VALIDITY_SECONDS };
  return {
    contract,
    status,
    requirement: exactInfo.requirement(config.rails),
    read: (payload) => readSigned(payload, contract),
    checkAccepted: (accepted, requirement) => {
      checkAccepted(accepted, requirement);
      if (!isSoldAt(BigInt(requirement.amount), config.rails))
        throw new PaymentRefused(NOT_OFFERED, { detail: OTHER_RAILS });
    },
    check: ({ authorization }, requirement, now) => checkAuthorization(authorization, requirement, now, validity),
    checkSignature: createSignatureCheck({ check, digestOf, status, ledger, contracts }),
    ...createAuthorizationChecks({ ...needs, status, reasons: REASONS }),
    receipt: plainReceipt,
  };
}

/** Throws when no relayer is configured. */
function openRelayed({ lookup }: Pick<Evidence, 'lookup'>, { relayer }: SettlerContext): Settler {
  // Other rails use the relayer too, so this one does not stop it.
  return { ...relayer(exactInfo.name), lookup, ownOnly: false, stop: async () => {} };
}

/** A shared read continues for the other callers. The settler's watch checks its own signal. */
const NEVER = new AbortController().signal;

/** Nothing is sold while the token refuses transfers to the seller. */
function openFacilitated(
  remote: NonNullable<Config['rails']['remote']>,
  needs: ExactNeeds,
  { noteBroadcast }: SettlerContext,
): Settler {
  const { config, evidence, check, token, clock, log } = needs;
  const client = openFacilitator(remote, needs);
  const isUsed = async (authorization: Authorization): Promise<boolean> =>
    (await check.read(authorization, NEVER)).used;
  const hasCode = async (authorization: Authorization): Promise<boolean> =>
    (await check.read(authorization, NEVER)).hasCode;
  const parts = {
    client,
    evidence,
    isUsed,
    hasCode,
    usedBefore: null,
    extra: EXACT_EXTRA,
    noteBroadcast,
    config,
    token,
  };
  const settler = createServiceSettler({ clock, log }, parts);
  return {
    ...settler,
    unavailable: () => settler.unavailable() ?? token.refusal(),
    // The Gateway's kind has the same scheme and network, but this rail does not sell for it.
    probe: () => probeSupported(client, config.network.caip2, (extra) => extra?.name !== GATEWAY_DOMAIN.name),
  };
}

/** Throws when the key for seller proofs is not the seller's: the facilitator would then settle no payment. */
function openFacilitator(
  { mode, url, token, sellerKey, timeoutMs }: NonNullable<Config['rails']['remote']>,
  { config, outgoing, clock }: ExactNeeds,
): FacilitatorClient {
  const network = config.network.caip2;
  if (mode === 'x402') return createHttpFacilitator({ url, token, timeoutMs, network, userAgent: outgoing.userAgent });
  const proof = sellerKey && createSellerProof(clock, sellerKey, network);
  if (proof && proof.payTo !== config.seller.toLowerCase())
    throw new Error('REMOTE_FACILITATOR_SELLER_KEY is not the key of SELLER_ADDRESS');
  const auth = proof ? { proof } : { token: token ?? '' };
  const upstream = outgoing.upstreams.open({ name: 'facilitator', timeoutMs, ...REMOTE_BOUNDS });
  return createCircleFacilitator({ upstream, url, auth, network, clock, pendingMs: config.settleWaitMs });
}
