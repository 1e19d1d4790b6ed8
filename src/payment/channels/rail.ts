import type { PaymentRequirements } from '@x402/core/types';
import type { ChainClient } from '../../chain/rpc/client.ts';
import type { ChannelsConfig } from '../../config/channels.ts';
import type { Config } from '../../config.ts';
import type { Clock } from '../../lib/clock.ts';
import { hexToBytes } from '../../lib/hex.ts';
import type { Log } from '../../lib/log.ts';
import { addressOf, signRecoverable } from '../../lib/secp256k1.ts';
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
import type { Authorization, SettlerStatus } from '../settler.ts';
import { checkAccepted, neededValidity, receiveDigest } from '../usdc/authorization.ts';
import {
  type ChainCheck,
  type ContractBudget,
  createAuthorizationChecks,
  createSignatureCheck,
} from '../usdc/checks.ts';
import type { Evidence } from '../usdc/evidence.ts';
import { domainSeparator, USDC_DOMAIN } from '../usdc/token.ts';
import { type ChannelMessage, channelReceipt, createChannelBook, createSharedChannelReads } from './channel.ts';
import { checkAuthorizer, claimLimits, createClaimRisk } from './claim-health.ts';
import type { ClaimReport } from './claims.ts';
import {
  createDepositChecks,
  createDepositLimits,
  type DepositOptions,
  type DepositPayment,
  depositPayment,
  sellDeposit,
} from './deposit.ts';
import { createRefund } from './refund.ts';
import {
  CHANNEL_REFUSALS,
  type ChannelPayload,
  type ChannelTerms,
  checkVoucher,
  createScheme,
  RAIL,
  readPayload,
  reason,
  SCHEME,
  SETTLEMENT,
  SETTLEMENT_BYTES,
  signerOf,
} from './scheme.ts';
import { createContractProbe, openChannelsSettler } from './settler.ts';
import { createTurns } from './turns.ts';
import { createCorrections, sellForVoucher, type VoucherContext } from './voucher-sale.ts';

// The rail `usdc-channels`, put together: the sale of its three kinds of message (a deposit is a signed payment; a
// voucher is charged at once; a refund buys nothing), and what a 402 says. What settles stands in settler.ts.

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
  name: RAIL,
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
