import type { PaymentRequirements } from '@x402/core/types';
import type { ChainClient } from '../../chain/rpc/client.ts';
import type { Config } from '../../config.ts';
import { Unavailable } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/common.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { createSharedReads } from '../../lib/limits/queue.ts';
import { recoverAddress } from '../../lib/secp256k1.ts';
import type { GatewayTransferStore } from '../../store/ports/stores.ts';
import type { Upstreams } from '../../upstream/client/client.ts';
import type { Ledger } from '../ledger.ts';
import type { RailInfo, SignedScheme, UsdcRail, Verified } from '../rail.ts';
import { plainReceipt } from '../receipt.ts';
import { PaymentRefused, type RefusalSentences } from '../refusal.ts';
import { type SaleContext, sellSigned } from '../sale.ts';
import { ALREADY_USED, type Authorization, type Intent, type Settler, type SettlerContext } from '../settler.ts';
import {
  authorizationDigest,
  checkAccepted,
  checkAuthorization,
  MOST_VALIDITY_SECONDS,
  readSigned,
  type ServingTimes,
} from './authorization.ts';
import type { TokenWatch } from './checks.ts';
import { probeSupported, REMOTE_BOUNDS, type SupportedKind, settleRequest } from './facilitator.ts';
import { createServiceSettler } from './facilitator-settler.ts';
import {
  createGatewayBatches,
  createGatewayBooks,
  createGatewayClient,
  createGatewayEvidence,
} from './gateway-client.ts';
import { domainSeparator, GATEWAY_DOMAIN } from './token.ts';

// The rail `usdc-gateway`: an authorization of the Gateway Wallet, settled by the Gateway in batches. The Gateway alone
// decides about it, because it holds the payer's deposit.

interface GatewayNeeds {
  config: Pick<Config, 'rails' | 'network' | 'publicOrigin' | 'handlerTimeoutMs' | 'receiptPollMs' | 'settleWaitMs'>;
  sales: SaleContext;
  chain: Pick<ChainClient, 'batch'>;
  ledger: Pick<Ledger, 'sumOfOpen' | 'get'>;
  token: Pick<TokenWatch, 'check'>;
  transfers: GatewayTransferStore;
  outgoing: { readonly upstreams: Upstreams };
  clock: Clock;
  log: Log;
}

export function openGatewayRail(needs: GatewayNeeds, status: Pick<Settler, 'unavailable'>): UsdcRail {
  const { config, outgoing, clock } = needs;
  const { network, publicOrigin, rails } = config;
  if (!rails.gateway) throw new Error('the Gateway is off');
  const gateway = openGateway(rails.gateway, clock, network, publicOrigin, outgoing.upstreams);
  const scheme = createGatewayScheme(gateway, needs, status);
  return {
    info: gatewayInfo,
    contract: scheme.contract,
    recognises: isGatewayAccepted,
    sell: (call, credential) => sellSigned(needs.sales, scheme, call, credential),
    openSettler: (context) => openSettler(gateway, needs, context),
  };
}

function openSettler(
  { client, evidence, extra, wallet }: OpenGateway,
  { config, chain, ledger, token, transfers: store, clock, log }: GatewayNeeds,
  { noteBroadcast }: SettlerContext,
): Settler {
  const usedBefore = async ({ authorization }: Intent): Promise<string | null> =>
    (await evidence.isUsed(authorization)) ? ALREADY_USED : null;
  const parts = { client, evidence, isUsed: null, hasCode: null, usedBefore, extra, noteBroadcast, config, token };
  const batches = createGatewayBatches({ clock, log }, client, store);
  return {
    ...createServiceSettler({ clock, log }, parts),
    refresh: batches.round,
    books: createGatewayBooks({ chain, transfers: store, ledger, usdc: config.network.usdc, wallet }),
    probe: () => probeSupported(client, config.network.caip2, (extra) => isGatewayExtra(extra, wallet)),
  };
}

/** Whether `extra` of a kind names the Gateway's domain, with the contract that our payers sign for. */
function isGatewayExtra(extra: SupportedKind['extra'], wallet: string): boolean {
  const { name, version, verifyingContract: contract } = extra ?? {};
  const isNamed = name === GATEWAY_DOMAIN.name && version === GATEWAY_DOMAIN.version;
  return isNamed && typeof contract === 'string' && contract.toLowerCase() === wallet;
}

/** A batch is looked up by its transfer, not by a block. The Gateway takes no payments of accounts with code. */
const VERIFIED: Verified = { checkedBlock: 0, hasCode: false };
/** Depositors of one request. The service publishes no limit; so many fit into any request. */
const MOST_DEPOSITORS = 20;
/** Depositors that may wait, for twenty requests. A client without a place is refused at once. */
const PLACES = 400;
/** Milliseconds that a depositor waits. Then it is refused. */
const WAIT_MS = 4000;
const INSUFFICIENT = 'insufficient_balance';

function createGatewayScheme(
  gateway: OpenGateway,
  { ledger, config, clock }: GatewayNeeds,
  status: Pick<Settler, 'unavailable'>,
): SignedScheme {
  const contract = hexToBytes(gateway.wallet);
  const check = createGatewayCheck(config);
  const ask = (depositors: readonly Uint8Array[]) => gateway.client.balances(depositors.map(bytesToHex));
  const queue = { places: () => PLACES, waitMs: WAIT_MS, refusal: busy };
  const readDeposit = createSharedReads<Uint8Array, bigint>(clock, ask, MOST_DEPOSITORS, queue);

  /** Throws PaymentRefused when used: before its first presentation here, it paid another ledger or something else. */
  async function checkUnused(authorization: Authorization): Promise<void> {
    if (await gateway.evidence.isUsed(authorization)) throw new PaymentRefused(ALREADY_USED);
  }

  return {
    contract,
    // The Gateway names no payers that it refuses.
    status: { unavailable: status.unavailable, refuses: () => null },
    read: (payload) => readSigned(payload, contract),
    checkAccepted,
    requirement: gatewayInfo.requirement(config.rails),
    check: ({ authorization }, requirement, now) => check(authorization, requirement, now),
    checkSignature: async ({ payment: { authorization } }) => {
      await gateway.checkSignature(authorization);
      return null;
    },
    /** The Gateway may have taken what was handed over before. Its transfers decide. */
    review: async ({ payment: { authorization } }, _reverted, mayLookUp) =>
      mayLookUp() ? gateway.evidence.lookup(authorization) : { kind: 'unknown' },
    readPayer: async ({ payment: { authorization }, asker: { client, signal } }) => {
      const balance = await readDeposit(authorization.from, signal, client);
      if (balance < authorization.value) throw new PaymentRefused(INSUFFICIENT);
      return { used: false, balance, hasCode: false, block: 0 };
    },
    /** The deposit covers earlier open payments too. An authorization that we handed over before may be used. */
    verify: async ({ id, key, payment: { authorization }, asker: { signal }, reverted }, { balance }) => {
      const promised = await ledger.sumOfOpen(key, id);
      if (balance < authorization.value + promised) throw new PaymentRefused(INSUFFICIENT);
      const [reason] = await Promise.all([
        gateway.verify(authorization, signal),
        reverted ? undefined : checkUnused(authorization),
      ]);
      if (reason !== null) throw new PaymentRefused(reason);
      return VERIFIED;
    },
    receipt: plainReceipt,
  };
}

function busy(): Unavailable {
  return new Unavailable(
    'gateway_busy',
    'Too many payments over the Gateway wait to be looked at; try again shortly.',
    1,
  );
}

/** The Gateway takes an authorization only while it is valid for this many seconds more: its `/supported` says so. */
const MIN_VALIDITY_SECONDS = 604_800;
/** Seconds before it is handed over, beyond the handler's. Clients sign for 100 more than the Gateway requires. */
const HANDING_OVER_SECONDS = 5;

/** The plain rail's cheap checks and two of the Gateway's. Throws PaymentRefused for the first that fails. */
export function createGatewayCheck({ handlerTimeoutMs }: Pick<ServingTimes, 'handlerTimeoutMs'>) {
  const least = MIN_VALIDITY_SECONDS + Math.ceil(handlerTimeoutMs / 1000) + HANDING_OVER_SECONDS;
  return (authorization: Authorization, requirement: PaymentRequirements, now: number): void => {
    checkAuthorization(authorization, requirement, now, { least: 0, most: MOST_VALIDITY_SECONDS });
    // After the call is served, it is still valid for as long as the Gateway requires.
    if (authorization.validBefore < BigInt(now + least)) throw new PaymentRefused('authorization_validity_too_short');
    if (Buffer.compare(authorization.from, authorization.to) === 0) throw new PaymentRefused('self_transfer');
  };
}

/** Checks that the payer signed for the Gateway Wallet. Only a key can: the Gateway asks no contracts (ERC-1271). */
export function createGatewaySignatureCheck(chainId: number, wallet: `0x${string}`) {
  const separator = domainSeparator(GATEWAY_DOMAIN.name, GATEWAY_DOMAIN.version, chainId, hexToBytes(wallet));
  return async (authorization: Authorization): Promise<void> => {
    const signer = recoverAddress(authorizationDigest(authorization, separator), authorization.signature);
    if (signer && Buffer.compare(signer, authorization.from) === 0) return;
    throw new PaymentRefused('invalid_exact_evm_signature');
  };
}

export function gatewayRequirement(plain: PaymentRequirements, wallet: `0x${string}`): PaymentRequirements {
  return { ...plain, extra: gatewayExtra(wallet) };
}

export function gatewayExtra(wallet: `0x${string}`) {
  return { ...GATEWAY_DOMAIN, verifyingContract: wallet };
}

export function isGatewayAccepted(accepted: Record<string, unknown>): boolean {
  const { extra } = accepted;
  return typeof extra === 'object' && extra !== null && 'name' in extra && extra.name === GATEWAY_DOMAIN.name;
}

/** A sentence for each reason of the Gateway's own that we give. The Gateway may give others. */
const GATEWAY_REFUSALS: RefusalSentences = {
  insufficient_balance:
    'The payer’s deposit in the Gateway is too small for this call and its other open payments. ' +
    'Deposit more, or pay by another entry of accepts.',
  authorization_validity_too_short:
    'The authorization ends too soon for the Gateway. Sign it for the whole maxTimeoutSeconds of the entry.',
  self_transfer: 'The payer is the seller. Pay from another wallet.',
};

/** One of several ways to pay, so a fault of its service is only shown. */
export const gatewayInfo: RailInfo = {
  name: 'usdc-gateway',
  isOn: ({ gateway }) => gateway !== null,
  contract: ({ rails }) => rails.gateway?.wallet ?? null,
  isUnknownWhileOff: true,
  way: 'gateway',
  needs: 'gateway',
  requirement: ({ gateway }) => {
    if (!gateway) throw new Error('the Gateway is off');
    return (plain) => gatewayRequirement(plain, gateway.wallet);
  },
  refusals: GATEWAY_REFUSALS,
  service: ({ gateway }) => gateway && { name: 'gateway', isVital: false },
};

/** For both parts of a sale: the serving process asks it before the handler runs, the settling one afterwards. */
function openGateway(
  { url, token, wallet, timeoutMs }: NonNullable<Config['rails']['gateway']>,
  clock: Clock,
  network: { readonly caip2: `eip155:${number}`; readonly usdc: `0x${string}` },
  publicOrigin: string,
  upstreams: Upstreams,
) {
  const { caip2, usdc } = network;
  const upstream = upstreams.open({ name: 'gateway', timeoutMs, ...REMOTE_BOUNDS });
  const client = createGatewayClient({ upstream, url, token, network: caip2 });
  const extra = gatewayExtra(wallet);
  const terms = { network: caip2, usdc, extra, publicOrigin };
  return {
    client,
    wallet,
    extra,
    evidence: createGatewayEvidence(client, caip2, clock),
    checkSignature: createGatewaySignatureCheck(Number(caip2.split(':')[1]), wallet),
    verify: (authorization: Authorization, signal: AbortSignal): Promise<string | null> =>
      client.verify(settleRequest(authorization, terms), signal),
  };
}

type OpenGateway = ReturnType<typeof openGateway>;
