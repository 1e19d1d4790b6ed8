import type { PaymentRequirements } from '@x402/core/types';
import type { ChainClient } from '../../chain/rpc/client.ts';
import { data, type RpcOutcome, readOutcome } from '../../chain/rpc/wire.ts';
import type { ChannelsConfig } from '../../config/channels.ts';
import type { Config } from '../../config.ts';
import type { Clock } from '../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Log } from '../../lib/log.ts';
import { addressOf, signRecoverable } from '../../lib/secp256k1.ts';
import { allTried, createRounds } from '../../lib/tasks.ts';
import type { ChannelConfig } from '../../store/ports/channel-state.ts';
import type { ChannelStore } from '../../store/ports/channels.ts';
import type { Sold } from '../call.ts';
import { hashRequest, type Ledger } from '../ledger.ts';
import { askerOf, checkFailures, counted } from '../limits.ts';
import type { Accepted, Credential } from '../protocol.ts';
import type { RailInfo, Sale, SignedScheme, UsdcCall, UsdcRail } from '../rail.ts';
import { PaymentRefused } from '../refusal.ts';
import type { RelayerMetrics } from '../relayer/metrics.ts';
import type { Wallet } from '../relayer/transactions.ts';
import type { SaleContext } from '../sale.ts';
import type { Authorization, RailProbe, Settler, SettlerContext, SettlerStatus } from '../settler.ts';
import { checkAccepted, neededValidity, receiveDigest } from '../usdc/authorization.ts';
import { createTransferBooks } from '../usdc/books.ts';
import {
  type ChainCheck,
  type ContractBudget,
  createAuthorizationChecks,
  createSignatureCheck,
} from '../usdc/checks.ts';
import type { Evidence } from '../usdc/evidence.ts';
import { domainSeparator, USDC_DOMAIN } from '../usdc/token.ts';
import { createChannelBooks } from './books.ts';
import { channelIdCalldata } from './calldata.ts';
import {
  type ChannelMessage,
  channelReceipt,
  createChannelBook,
  createChannelPruning,
  createChannelReader,
  createSharedChannelReads,
} from './channel.ts';
import {
  checkAuthorizer,
  claimLimits,
  createClaimAlarm,
  createClaimRisk,
  createWithdrawalAlarms,
  publishUnclaimed,
} from './claim-health.ts';
import { type ClaimReport, createClaims } from './claims.ts';
import {
  createDepositChecks,
  createDepositLimits,
  type DepositOptions,
  type DepositPayment,
  depositPayment,
  sellDeposit,
} from './deposit.ts';
import { createRefund } from './refund.ts';
import { createRefundOperations } from './refund-sending.ts';
import {
  CHANNEL_REFUSALS,
  type ChannelPayload,
  type ChannelTerms,
  checkVoucher,
  createScheme,
  DEPOSIT_COLLECTOR,
  readPayload,
  reason,
  SCHEME,
  type Scheme,
  SETTLEMENT,
  SETTLEMENT_BYTES,
  signerOf,
} from './scheme.ts';
import { createTurns } from './turns.ts';
import { createCorrections, sellForVoucher, type VoucherContext } from './voucher-sale.ts';
import { createWithdrawalWatch } from './withdrawals.ts';

// The rail `usdc-channels`, put together: the sale of its three kinds of message (a deposit is a signed payment; a
// voucher is charged at once; a refund buys nothing), what a 402 says, the part that settles, and the probe for the
// contracts. Before that nothing is offered.

interface ChannelSaleOptions extends VoucherContext, Pick<DepositOptions, 'bounds' | 'depositLimits'> {
  ledger: Pick<Ledger, 'sumOfOpen'>;
  balanceContracts: readonly Uint8Array[];
  check: Pick<ChainCheck, 'admit' | 'simulate'>;
  evidence: Pick<Evidence, 'lookup'>;
  requirement: SignedScheme['requirement'];
  checkSignature: SignedScheme['checkSignature'];
  refund: ReturnType<typeof createRefund>;
  clock: Clock;
}

const REASONS = {
  insufficient: reason('insufficient_balance'),
  // The deposit may be in the channel already, sent by a third party. The client's state is old then.
  used: reason('deposit_transaction_failed'),
  simulation: reason('deposit_simulation_failed'),
};

/** Sells each kind of message in its own way. No kind is known to the core. */
function createChannelSale(options: ChannelSaleOptions): UsdcRail['sell'] {
  const { sales, store, requirement, terms, scheme, refund } = options;
  const { failures } = sales;
  const deposit = createDepositScheme(options);

  /** Throws PaymentRefused unless the message is for the entry's terms and its signer made it. */
  function present(
    payload: ChannelPayload,
    call: UsdcCall,
    credential: Credential,
  ): Omit<ChannelMessage, 'identifier'> {
    const entry = requirement(call.plain);
    checkTerms(credential.accepted ?? entry, entry);
    return { payload, channelId: checkVoucher(payload, terms, scheme), call, asker: askerOf(failures, call) };
  }

  /** It runs no endpoint. So it is read before the request's parameters. */
  async function sellRefund(call: UsdcCall, credential: Credential): Promise<Sold> {
    const payload = readPayload(credential.payload);
    const identifier = credential.identifier();
    const signer = signerOf(payload);
    checkFailures(failures, signer, call.client);
    return counted(failures, signer, call, async (watched) =>
      refund({ ...present(payload, watched, credential), identifier }),
    );
  }

  async function sellByVoucher(call: UsdcCall, credential: Credential): Promise<Sold> {
    const requestHash = hashRequest(call.route, call.params());
    const identifier = credential.identifier();
    const payload = readPayload(credential.payload);
    const { protocol } = credential;
    return counted(failures, signerOf(payload), call, async (watched) =>
      sellForVoucher(options, { ...present(payload, watched, credential), identifier, requestHash, protocol }),
    );
  }

  return async (call, credential) => {
    switch (credential.payload.type) {
      case 'refund':
        return sellRefund(call, credential);
      case 'deposit':
        return sellDeposit(sales, deposit, store, call, credential);
      default:
        return sellByVoucher(call, credential);
    }
  };
}

function createDepositScheme(options: ChannelSaleOptions): SignedScheme<DepositPayment> {
  const { status, requirement, checkSignature } = options;
  const checks = createAuthorizationChecks({ ...options, reasons: REASONS });
  return {
    contract: SETTLEMENT_BYTES,
    status,
    requirement,
    checkSignature,
    read: (given) => {
      const payload = readPayload(given);
      if (payload.kind !== 'deposit') throw new PaymentRefused(reason('payload_type'));
      return depositPayment(payload);
    },
    checkAccepted: checkTerms,
    review: checks.review,
    ...createDepositChecks(options, checks),
    receipt: channelReceipt,
  };
}

function checkTerms(accepted: Accepted, requirement: Parameters<typeof checkAccepted>[1]): void {
  if (accepted.network !== requirement.network) throw new PaymentRefused(reason('network_mismatch'));
  checkAccepted(accepted, requirement);
}

/** Seconds of a stock client's deposit. Few, as an unclear one blocks its channel; many times a settlement. */
const DEPOSIT_SECONDS = 600;

/** The entry of a 402. The channel's id depends on recipient, token, authorizer and delay, not on the price. */
export function channelEntry({ authorizerKey, withdrawDelaySeconds, minDeposit }: ChannelsConfig) {
  const extra = {
    ...USDC_DOMAIN,
    receiverAuthorizer: addressOf(hexToBytes(authorizerKey)),
    withdrawDelay: withdrawDelaySeconds,
    minDeposit: minDeposit.toString(),
  };
  return (plain: PaymentRequirements): PaymentRequirements => ({
    ...plain,
    scheme: SCHEME,
    maxTimeoutSeconds: DEPOSIT_SECONDS,
    extra,
  });
}

/** Gas of a call, of 50 whose channel is claimed alone (docs/benchmarks.md, "What a call costs the seller"). */
const CALL_GAS = 5700n;

export const channelsInfo: RailInfo = {
  name: 'usdc-channels',
  isOn: ({ channels }) => channels !== null,
  contract: () => SETTLEMENT,
  way: 'channels',
  needs: 'channel',
  // A deposit does. A voucher takes from the channel, and is never open.
  takesFromBalance: true,
  holdsEarnings: true,
  entry: (plain, { channels }) => {
    if (!channels) throw new Error('payment channels are off');
    return channelEntry(channels)(plain);
  },
  gasOfCall: () => CALL_GAS,
  isOfferedOnceProven: true,
  refusals: CHANNEL_REFUSALS,
  checkLedger: checkAuthorizer,
  service: ({ channels }) => channels && { name: 'channels', isVital: false },
};

interface ChannelsNeeds {
  config: Config;
  sales: SaleContext;
  ledger: Ledger;
  channels: ChannelStore;
  balanceContracts: readonly Uint8Array[];
  /** Its requests have the rank `settle`, where none is named. */
  chain: ChainClient;
  check: ChainCheck;
  contracts: ContractBudget;
  evidence: Evidence;
  /** Null where no relayer is configured. */
  wallet: Wallet | null;
  metrics?: RelayerMetrics | undefined;
  clock: Clock;
  log: Log;
}

/** Seconds by which a client's clock may be ahead of ours. */
const CLOCK_SLACK_SECONDS = 120;
/** Milliseconds that a stop waits for the last claims: half of what a stop may take (`src/http/lifecycle.ts`). */
const LAST_CLAIMS_MS = 5000;

export interface OpenChannels extends UsdcRail {
  /** Claims all charges. Rejects in a process that does not settle, and when chain or ledger cannot be read. */
  claimAll(signal: AbortSignal): Promise<ClaimReport>;
}

export function openChannels(needs: ChannelsNeeds, status: SettlerStatus): OpenChannels {
  const { config } = needs;
  const { channels } = config.rails;
  if (!channels) throw new Error('payment channels are off');
  const scheme = createScheme(config.network.chainId);
  const terms: ChannelTerms = {
    receiver: hexToBytes(config.seller),
    receiverAuthorizer: hexToBytes(addressOf(hexToBytes(channels.authorizerKey))),
    token: hexToBytes(config.network.usdc),
    withdrawDelay: channels.withdrawDelaySeconds,
  };
  const sample = { ...terms, payer: terms.receiver, payerAuthorizer: terms.receiver, salt: new Uint8Array(32) };
  const probe = createContractProbe(needs.chain, scheme, sample);
  const network = config.network.caip2;
  const sender = needs.wallet?.address ?? config.seller;
  /** Null where another process settles, which looks for new refunds by itself. */
  let here: ReturnType<typeof openChannelsSettler> | null = null;
  return {
    info: channelsInfo,
    recognises: (accepted) => accepted.scheme === SCHEME,
    contract: SETTLEMENT_BYTES,
    sell: openSale(needs, status, { channels, scheme, terms, onBegun: () => here?.wake() }),
    openSettler: (context) => {
      here = openChannelsSettler(
        { ...needs, store: needs.channels, channels, scheme, terms, probe, network, sender, waitMs: LAST_CLAIMS_MS },
        context,
      );
      return here.settler;
    },
    claimAll: async (signal) => {
      if (!here) throw new Error('this process does not settle');
      return here.claimAll(signal);
    },
  };
}

interface OpenSaleOptions {
  channels: ChannelsConfig;
  scheme: ReturnType<typeof createScheme>;
  terms: ChannelTerms;
  onBegun(): void;
}

function openSale(
  needs: ChannelsNeeds,
  status: SettlerStatus,
  { channels, scheme, terms, onBegun }: OpenSaleOptions,
): UsdcRail['sell'] {
  const { config, sales, ledger, balanceContracts, check, evidence, clock } = needs;
  const network = config.network.caip2;
  const store = needs.channels;
  const withdrawDelaySeconds = channels.withdrawDelaySeconds;
  const read = createSharedChannelReads(needs.chain, clock);
  const book = createChannelBook({
    store,
    read,
    network,
    withdrawDelaySeconds,
    lastHead: needs.chain.agreed.lastHead,
    clock,
  });
  const limits = claimLimits(channels);
  const key = hexToBytes(channels.authorizerKey);
  const context = { sales, store, book, turns: createTurns(clock), status, scheme, terms };
  const risk = createClaimRisk({ store, network, limits, clock });
  const sign = (digest: Uint8Array) => signRecoverable(digest, key);
  return createChannelSale({
    ...context,
    ledger,
    balanceContracts,
    check,
    evidence,
    clock,
    limits,
    risk,
    corrections: createCorrections(store),
    requirement: channelEntry(channels),
    checkSignature: createDepositCheck(needs, status),
    refund: createRefund({ ...context, network, clock, sign, onBegun, waitMs: config.settleWaitMs }),
    depositLimits: createDepositLimits({ store, config: channels, clock }),
    bounds: {
      minDeposit: channels.minDeposit,
      leastValidity: neededValidity(config),
      mostValidity: DEPOSIT_SECONDS + CLOCK_SLACK_SECONDS,
    },
  });
}

function createDepositCheck({ config, ledger, check, contracts }: ChannelsNeeds, status: SettlerStatus) {
  const { usdc, chainId } = config.network;
  const separator = domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, chainId, hexToBytes(usdc));
  const digestOf = (authorization: Authorization) => receiveDigest(authorization, separator);
  const checkSignature = createSignatureCheck({ check, digestOf, status, ledger, contracts });
  return (sale: Sale) =>
    checkSignature(sale).catch((error) => {
      throw error instanceof PaymentRefused ? new PaymentRefused(reason('receive_authorization_signature')) : error;
    });
}

/** Milliseconds between two looks for open refunds: another process may have stored one. */
const REFUNDS_MS = 1000;

interface ChannelsSettlerOptions {
  readonly store: ChannelStore;
  readonly chain: ChainClient;
  readonly evidence: Evidence;
  readonly scheme: Scheme;
  readonly terms: ChannelTerms;
  readonly channels: ChannelsConfig;
  readonly network: string;
  readonly sender: `0x${string}`;
  readonly probe: () => Promise<RailProbe>;
  readonly waitMs: number;
  readonly metrics?: RelayerMetrics | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export function openChannelsSettler(options: ChannelsSettlerOptions, context: SettlerContext) {
  const { store, chain, evidence, channels, network, terms, probe, clock, log } = options;
  const relayer = context.relayer(channelsInfo.name);
  const stopping = new AbortController();
  const reader = createChannelReader(chain);
  const { receiver, token } = terms;
  const parts = { ...options, relayer, reader, receiver, token, fencingToken: context.fencingToken };
  const limits = claimLimits(channels);
  const alarms = createWithdrawalAlarms(clock);
  const alarm = createClaimAlarm({ store, network, limits, clock, log });
  const authorizerKey = hexToBytes(channels.authorizerKey);
  const claims = createClaims({ ...parts, relayer: alarm.watching(relayer), authorizerKey, limits, alarms });
  if (options.metrics) publishUnclaimed(options.metrics, store, network, alarms);
  const refunds = createRefundOperations(parts);
  const claimDue = createRounds(() => alarm.round(() => claims.run(false, stopping.signal)), log);
  const prune = createChannelPruning(store, clock);
  const withdrawals = createWithdrawalWatch({ ...parts, alarms, withdrawDelaySeconds: channels.withdrawDelaySeconds });

  const settler: Settler = {
    ...relayer,
    unavailable: () => relayer.unavailable() ?? alarm.why(),
    cannotSend: () => relayer.cannotSend() ?? alarm.why(),
    /** An instance of several sends no last claims: it gives its lease up first, and the next leader claims. */
    stop: async () => {
      stopping.abort();
      if (context.fencingToken === undefined) await claimLast(claims, options);
    },
    lookup: evidence.lookup,
    ownOnly: false,
    books: openChannelBooks(options),
    probe: async () => {
      const why = alarm.whyStopped();
      return why === null ? probe() : { ok: false, detail: why };
    },
    load: async () => void lookForRefunds(refunds, options, stopping.signal),
    /** Reads nothing without the contracts. It does not wait for its claims: one may wait long for its block. */
    refresh: async () => {
      if (!(await probe()).ok) return;
      const watched = withdrawals.run();
      // After the watch, so that the claims see its withdrawals. A watch that fails stops no claims.
      void watched.catch(() => {}).then(claimDue);
      await allTried([watched, prune()]);
    },
  };
  return {
    settler,
    wake: () => void refunds.run().catch(() => {}),
    claimAll: async (signal: AbortSignal) => {
      const { ok, detail } = await probe();
      if (!ok) throw new Error(`payment channels cannot be claimed: ${detail}`);
      return claims.run(true, signal);
    },
  };
}

/** Deposits are compared as transfers that the contract passed on, claims with what the contract recorded. */
function openChannelBooks({ chain, evidence, store, network, terms: { receiver, token } }: ChannelsSettlerOptions) {
  return {
    ...createTransferBooks({ chain, evidence, usdc: bytesToHex(token), passedTo: SETTLEMENT_BYTES }),
    ...createChannelBooks({ chain, store, network, receiver, token }),
  };
}

async function lookForRefunds(
  refunds: ReturnType<typeof createRefundOperations>,
  { clock, log }: Pick<ChannelsSettlerOptions, 'clock' | 'log'>,
  stopping: AbortSignal,
): Promise<void> {
  while (!stopping.aborted) {
    await refunds.run().catch((err) => log.warn({ err }, 'refunds wait'));
    await clock.sleep(REFUNDS_MS, stopping).catch(() => {});
  }
}

/** Claims what is open before a stop, as far as that is done in time. */
async function claimLast(
  claims: ReturnType<typeof createClaims>,
  { waitMs, clock, log }: Pick<ChannelsSettlerOptions, 'waitMs' | 'clock' | 'log'>,
): Promise<void> {
  const late = new AbortController();
  const claimed = claims
    .run(true, late.signal)
    .catch((err) => log.warn({ err }, 'the last claims wait for the next start'));
  await Promise.race([claimed, clock.sleep(waitMs, late.signal).catch(() => {})]);
  late.abort();
}

const UNREAD = 'the chain could not be read';

/**
 * Looks for the scheme's contracts, and for our channel id of `sample`. What was found stays found: it cannot be
 * replaced. Never rejects. One provider that finds none decides nothing: nobody would watch withdrawals then.
 */
export function createContractProbe(
  chain: Pick<ChainClient, 'each'>,
  scheme: Scheme,
  sample: ChannelConfig,
): () => Promise<RailProbe> {
  let isFound = false;
  const ours = bytesToHex(scheme.channelId(sample));
  const addresses = [SETTLEMENT, DEPOSIT_COLLECTOR];
  const calls = [
    ...addresses.map((address) => ({ method: 'eth_getCode', params: [address, 'latest'] })),
    { method: 'eth_call', params: [{ to: SETTLEMENT, data: channelIdCalldata(sample) }, 'latest'] },
  ];

  /** What one provider does not find; null when it finds all. Throws for an answer that cannot be read. */
  function faultIn(outcomes: readonly RpcOutcome[]): string | null {
    const missing = addresses.find((_, at) => readOutcome(outcomes[at], data, 'code') === '0x');
    if (missing) return `no contract stands at ${missing}`;
    const id = readOutcome(outcomes[addresses.length], data, 'channel id');
    return id === ours ? null : `the contract at ${SETTLEMENT} computes other channel ids`;
  }

  async function fault(): Promise<string | null> {
    const answers = await chain.each(calls, { rank: 'collect' });
    const faults = answers.flatMap((outcomes) => {
      try {
        return [faultIn(outcomes)];
      } catch {
        return [];
      }
    });
    const missing = faults.filter((one) => one !== null);
    if (faults.length === 0) return UNREAD;
    return missing.length < faults.length && missing.length < 2 ? null : (missing[0] ?? null);
  }

  return async () => {
    if (isFound) return { ok: true };
    const found = await fault().catch(() => UNREAD);
    isFound = found === null;
    return found === null ? { ok: true } : { ok: false, detail: found };
  };
}
