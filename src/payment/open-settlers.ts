import type { RemoteFacilitatorConfig } from '../config/rails.ts';
import type { Clock } from '../lib/clock.ts';
import { hexToBytes } from '../lib/hex.ts';
import type { GatewayTransferStore } from '../store/ports/transfers.ts';
import type { Upstreams } from '../upstream/client/http.ts';
import type { Authorization } from './authorization.ts';
import type { ChainCheck } from './evm/chain-check.ts';
import type { Evidence } from './evm/evidence.ts';
import { USDC_DOMAIN } from './evm/token.ts';
import type { TokenWatch } from './evm/token-watch.ts';
import { createGatewayBatches } from './rails/usdc-gateway/batches.ts';
import { type OpenGateway, REMOTE_CONCURRENCY, REMOTE_MAX_BYTES } from './rails/usdc-gateway/open.ts';
import { GATEWAY_DOMAIN } from './rails/usdc-gateway/payload.ts';
import { ALREADY_USED, type Intent, type Settler, type SettlingRail } from './settler.ts';
import { createCircleFacilitator } from './settlers/facilitator/circle.ts';
import {
  createHttpFacilitator,
  type FacilitatorClient,
  type Supported,
  type SupportedKind,
} from './settlers/facilitator/client.ts';
import { createRemoteSettler } from './settlers/facilitator/remote-settler.ts';
import { createSellerProof } from './settlers/facilitator/seller-proof.ts';
import type { RailProbe } from './settling.ts';

interface RailsOptions {
  /** Null: our own relayer settles. */
  remote: RemoteFacilitatorConfig | null;
  /** Null: the Gateway is not offered. */
  gateway: OpenGateway | null;
  network: { readonly caip2: `eip155:${number}`; readonly usdc: `0x${string}` };
  seller: `0x${string}`;
  publicOrigin: string;
  userAgent: string;
  /** Makes our own settler, where the configuration names no other. */
  relayer(): Settler;
  evidence: Pick<Evidence, 'lookup'>;
  /** Reads of payers, which many share. */
  check: Pick<ChainCheck, 'read'>;
  token: Pick<TokenWatch, 'check' | 'refusal'>;
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

/** A shared read goes on for the others; the watch looks at its own signal. */
const NEVER = new AbortController().signal;

/**
 * The USDC rails that the configuration turns on: the plain one, settled by us or by a facilitator, and the Gateway's beside it.
 * Throws when the trial's key is not the seller's: no payment would be taken with it.
 */
export function createRails(options: RailsOptions) {
  const { network, gateway: opened } = options;
  const remote = options.remote && openRemote(options.remote, options);
  const direct: SettlingRail = remote
    ? openFacilitated(remote, options)
    : { settler: options.relayer(), evidence: options.evidence, ownOnly: false };
  const gateway = opened && openGatewayRail(opened, options);
  const usdcBytes = hexToBytes(network.usdc);
  const walletBytes = opened && hexToBytes(opened.wallet);

  async function probe(): Promise<Record<string, RailProbe>> {
    const checks: Record<string, Promise<RailProbe>> = {};
    if (remote) checks.facilitator = supports(remote, (kind) => isPlain(kind, network.caip2));
    if (opened) checks.gateway = supports(opened.client, (kind) => isGateway(kind, network.caip2, opened.wallet));
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
    of: (contract: Uint8Array): SettlingRail | null => {
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

type RemoteSettlerOptions = Parameters<typeof createRemoteSettler>[0];

/** What one remote settler has beside what all have. */
interface RemoteTerms extends Pick<RemoteSettlerOptions, 'client' | 'evidence' | 'isUsed' | 'usedBefore'> {
  extra: Record<string, unknown>;
}

function remoteRail({ client, evidence, isUsed, usedBefore, extra }: RemoteTerms, options: RailsOptions): SettlingRail {
  const { network, publicOrigin, noteBroadcast, clock, pollMs, waitMs, log } = options;
  const terms = { network: network.caip2, usdc: network.usdc, extra, publicOrigin };
  return {
    evidence,
    ownOnly: usedBefore !== null,
    settler: createRemoteSettler({
      ...{ client, evidence, isUsed, terms, usedBefore, noteBroadcast, clock, pollMs, log },
      onUnsettled: () => void options.token.check(),
      watchMs: waitMs,
      stallMs: waitMs,
    }),
  };
}

/** The plain rail, settled by a facilitator. */
function openFacilitated(client: FacilitatorClient, options: RailsOptions): SettlingRail {
  const { evidence, check, token } = options;
  const extra = { ...USDC_DOMAIN, assetTransferMethod: 'eip3009' };
  const isUsed = async (authorization: Authorization): Promise<boolean> =>
    (await check.read(authorization, NEVER)).used;
  return withToken(remoteRail({ client, evidence, isUsed, usedBefore: null, extra }, options), token);
}

function openGatewayRail({ client, evidence, extra }: OpenGateway, options: RailsOptions) {
  const { transfers: store, clock, log } = options;
  const usedBefore = async ({ authorization }: Intent): Promise<string | null> =>
    (await evidence.isUsed(authorization)) ? ALREADY_USED : null;
  return {
    ...remoteRail({ client, evidence, isUsed: null, usedBefore, extra }, options),
    batches: createGatewayBatches({ client, store, clock, log }),
  };
}

function openRemote(
  { mode, url, token, sellerKey, timeoutMs }: RemoteFacilitatorConfig,
  { network: { caip2: network }, seller, clock, userAgent, upstreams, waitMs }: RailsOptions,
): FacilitatorClient {
  if (mode === 'x402') return createHttpFacilitator({ url, token, timeoutMs, network, userAgent });
  const proof = sellerKey && createSellerProof({ key: sellerKey, network, clock });
  if (proof && proof.payTo !== seller.toLowerCase())
    throw new Error('REMOTE_FACILITATOR_SELLER_KEY is not the key of SELLER_ADDRESS');
  const auth = proof ? { proof } : { token: token ?? '' };
  const bounds = { maxBytes: REMOTE_MAX_BYTES, concurrency: REMOTE_CONCURRENCY, retries: 0 } as const;
  const upstream = upstreams.open({ name: 'facilitator', timeoutMs, ...bounds });
  return createCircleFacilitator({ upstream, url, auth, network, clock, pendingMs: waitMs });
}

/** A rail whose payments the token itself moves: while that is shut, nothing is sold over it. */
function withToken(rail: SettlingRail, token: RailsOptions['token']): SettlingRail {
  const { settler } = rail;
  return { ...rail, settler: { ...settler, unavailable: () => settler.unavailable() ?? token.refusal() } };
}

async function supports(
  client: Pick<FacilitatorClient, 'supported'>,
  fits: (kind: SupportedKind) => boolean,
): Promise<RailProbe> {
  try {
    const { kinds, signers } = await client.supported();
    const kind = kinds.find(fits);
    if (!kind) return { ok: false, detail: '/supported does not list this network' };
    const sender = signersOf(signers, kind.network).find((one) => ADDRESS.test(one));
    return { ok: true, ...(sender && { sender: sender.toLowerCase() as `0x${string}` }) };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : 'failed' };
  }
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/** Those of the network itself, before those of all networks of its kind. */
function signersOf(signers: Supported['signers'], network: string): readonly string[] {
  return [network, `${network.split(':')[0]}:*`].flatMap((name) =>
    Object.hasOwn(signers, name) ? (signers[name] ?? []) : [],
  );
}

function isPlain({ x402Version, scheme, network, extra }: SupportedKind, ours: string): boolean {
  return x402Version === 2 && scheme === 'exact' && network === ours && extra?.name !== GATEWAY_DOMAIN.name;
}

function isGateway({ x402Version, scheme, network, extra }: SupportedKind, ours: string, wallet: string): boolean {
  const named = extra?.name === GATEWAY_DOMAIN.name && extra.version === GATEWAY_DOMAIN.version;
  const contract = typeof extra?.verifyingContract === 'string' ? extra.verifyingContract.toLowerCase() : '';
  return x402Version === 2 && scheme === 'exact' && network === ours && named && contract === wallet;
}
