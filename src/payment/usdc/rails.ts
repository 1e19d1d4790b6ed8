import type { GatewayConfig, RailsConfig, RemoteFacilitatorConfig } from '../../config/rails.ts';
import type { Clock } from '../../lib/clock.ts';
import { hexToBytes } from '../../lib/hex.ts';
import type { GatewayTransferStore } from '../../store/gateway-transfers.ts';
import type { Upstreams } from '../../upstream/http.ts';
import { PaymentRefused } from '../refusal.ts';
import type { Authorization } from './authorization.ts';
import type { Evidence } from './evidence.ts';
import { createRemoteSettler } from './facilitator.ts';
import { createCircleFacilitator } from './facilitator-circle.ts';
import { createHttpFacilitator, type FacilitatorClient, type SupportedKind } from './facilitator-client.ts';
import { settleRequest } from './facilitator-request.ts';
import { createSellerProof } from './facilitator-seller-proof.ts';
import { createGatewaySignatureCheck, GATEWAY_DOMAIN, gatewayExtra } from './gateway.ts';
import { createGatewayBatches } from './gateway-batches.ts';
import { createGatewayClient } from './gateway-client.ts';
import { createGatewayEvidence } from './gateway-evidence.ts';
import type { Settler } from './settler.ts';
import { USDC_DOMAIN } from './token.ts';

/** One way for USDC to come in: who takes it, and where it shows that it was taken. */
export interface Rail {
  readonly settler: Settler;
  readonly evidence: Pick<Evidence, 'lookup'>;
}

/** What a start-up probe or `/readyz` says of a rail. */
export interface RailProbe {
  readonly ok: boolean;
  readonly detail?: string;
}

interface RailsOptions {
  config: RailsConfig;
  network: { readonly caip2: `eip155:${number}`; readonly usdc: `0x${string}` };
  seller: `0x${string}`;
  publicOrigin: string;
  userAgent: string;
  /** Makes our own settler, where the configuration names no other. */
  relayer(): Settler;
  evidence: Pick<Evidence, 'lookup'>;
  transfers: GatewayTransferStore;
  upstreams: Upstreams;
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<ReadonlySet<string>>;
  clock: Clock;
  /** Between two looks for a payment, and how long a buyer is held for an outcome. */
  pollMs: number;
  waitMs: number;
  log: {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
    error(detail: object, message: string): void;
  };
}

/** An answer to `/settle` has less than one KiB; `/supported` of a facilitator of many networks has some. */
const MAX_BYTES = 256 * 1024;
const CONCURRENCY = 128;

/**
 * The USDC rails that the configuration turns on: the plain one, settled by us or by a facilitator, and the Gateway's beside it.
 * Throws when the trial's key is not the seller's: no payment would be taken with it.
 */
export function createRails(options: RailsOptions) {
  const { config, network, publicOrigin, evidence, upstreams, noteBroadcast, clock, log } = options;
  const settlerOf = (client: FacilitatorClient, truth: Rail['evidence'], extra: Record<string, unknown>): Rail => ({
    evidence: truth,
    settler: createRemoteSettler({
      client,
      evidence: truth,
      terms: { network: network.caip2, usdc: network.usdc, extra, publicOrigin },
      noteBroadcast,
      clock,
      pollMs: options.pollMs,
      watchMs: options.waitMs,
      stallMs: options.waitMs,
      log,
    }),
  });
  const open = (name: string, timeoutMs: number) =>
    upstreams.open({ name, timeoutMs, maxBytes: MAX_BYTES, concurrency: CONCURRENCY, retries: 0 });

  const remote = config.remote && openRemote(config.remote, options, open);
  const direct: Rail = remote
    ? settlerOf(remote, evidence, { ...USDC_DOMAIN, assetTransferMethod: 'eip3009' })
    : { settler: options.relayer(), evidence };

  const gateway = config.gateway && openGateway(config.gateway, options, open, settlerOf);
  const usdcBytes = hexToBytes(network.usdc);
  const walletBytes = gateway && hexToBytes(gateway.wallet);

  async function probe(): Promise<Record<string, RailProbe>> {
    const checks: Record<string, Promise<RailProbe>> = {};
    if (remote) checks.facilitator = supports(remote, (kind) => isPlain(kind, network.caip2));
    if (gateway) checks.gateway = supports(gateway.client, (kind) => isGateway(kind, network.caip2, gateway.wallet));
    const entries = Object.entries(checks).map(async ([name, check]) => [name, await check] as const);
    return Object.fromEntries(await Promise.all(entries));
  }

  return {
    direct,
    /** Null where it is not offered. */
    gateway,
    /**
     * The rail of a ledger row, by the contract that its payer signed for. Null for a rail that is off now: its rows stay as they are,
     * because no other rail can tell what became of them.
     */
    of: (contract: Uint8Array): Rail | null => {
      if (usdcBytes.equals(contract)) return direct;
      return walletBytes?.equals(contract) ? gateway : null;
    },
    /** Asks each remote rail's `/supported` whether it settles what we sell for; our own relayer is watched elsewhere. Never rejects. */
    probe,
    stop: async () => {
      await Promise.all([direct.settler.stop(), gateway?.settler.stop()]);
    },
  };
}

function openRemote(
  { mode, url, token, sellerKey, timeoutMs }: RemoteFacilitatorConfig,
  { network: { caip2: network }, seller, clock, userAgent, waitMs }: RailsOptions,
  open: (name: string, timeoutMs: number) => ReturnType<Upstreams['open']>,
): FacilitatorClient {
  if (mode === 'x402') return createHttpFacilitator({ url, token, timeoutMs, network, userAgent });
  const proof = sellerKey && createSellerProof({ key: sellerKey, network, clock });
  if (proof && proof.payTo !== seller.toLowerCase())
    throw new Error('REMOTE_FACILITATOR_SELLER_KEY is not the key of SELLER_ADDRESS');
  const auth = proof ? { proof } : { token: token ?? '' };
  const upstream = open('facilitator', timeoutMs);
  return createCircleFacilitator({ upstream, url, auth, network, clock, pendingMs: waitMs });
}

/** The Gateway rail with what a purchase asks before and a timer after. */
function openGateway(
  { url, token, wallet, timeoutMs }: GatewayConfig,
  { network: { caip2, usdc }, publicOrigin, transfers, clock, log }: RailsOptions,
  open: (name: string, timeoutMs: number) => ReturnType<Upstreams['open']>,
  settlerOf: (client: FacilitatorClient, truth: Rail['evidence'], extra: Record<string, unknown>) => Rail,
) {
  const client = createGatewayClient({ upstream: open('gateway', timeoutMs), url, token, network: caip2 });
  const extra = gatewayExtra(wallet);
  const terms = { network: caip2, usdc, extra, publicOrigin };
  return {
    ...settlerOf(client, createGatewayEvidence(client, caip2, clock), extra),
    client,
    wallet,
    batches: createGatewayBatches({ client, store: transfers, clock, log }),
    /** Throws PaymentRefused unless the payer signed for the Gateway Wallet. */
    checkSignature: createGatewaySignatureCheck(Number(caip2.split(':')[1]), wallet),
    /** In place of the chain read before a handler: throws PaymentRefused in the Gateway's words. A balance is only seen on settling. */
    verify: async (authorization: Authorization, signal: AbortSignal): Promise<void> => {
      const reason = await client.verify(settleRequest(authorization, terms), signal);
      if (reason !== null) throw new PaymentRefused(reason);
    },
  };
}

async function supports(
  client: Pick<FacilitatorClient, 'supported'>,
  fits: (kind: SupportedKind) => boolean,
): Promise<RailProbe> {
  try {
    const kinds = await client.supported();
    return kinds.some(fits) ? { ok: true } : { ok: false, detail: '/supported does not list this network' };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : 'failed' };
  }
}

function isPlain({ x402Version, scheme, network, extra }: SupportedKind, ours: string): boolean {
  return x402Version === 2 && scheme === 'exact' && network === ours && extra?.name !== GATEWAY_DOMAIN.name;
}

function isGateway({ x402Version, scheme, network, extra }: SupportedKind, ours: string, wallet: string): boolean {
  const named = extra?.name === GATEWAY_DOMAIN.name && extra.version === GATEWAY_DOMAIN.version;
  const contract = typeof extra?.verifyingContract === 'string' ? extra.verifyingContract.toLowerCase() : '';
  return x402Version === 2 && scheme === 'exact' && network === ours && named && contract === wallet;
}
