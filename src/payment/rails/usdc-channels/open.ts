import type { ChainClient } from '../../../chain/rpc/client.ts';
import type { ChannelsConfig } from '../../../config/rails.ts';
import type { Config } from '../../../config.ts';
import type { Clock } from '../../../lib/clock.ts';
import { hexToBytes } from '../../../lib/hex.ts';
import { addressOf, signRecoverable } from '../../../lib/secp256k1.ts';
import type { ChannelStore } from '../../../store/ports/channels.ts';
import { type Authorization, paymentKey } from '../../authorization.ts';
import type { Ledger } from '../../ledger.ts';
import type { OpenRail, PurchaseRail } from '../../rail.ts';
import { PaymentRefused } from '../../refusal.ts';
import type { RelayerMetrics } from '../../relayer/metrics.ts';
import type { Wallet } from '../../relayer/transactions.ts';
import type { RailStatus } from '../../settling.ts';
import { neededValidity, receiveDigest } from '../../usdc/authorization.ts';
import { type ChainCheck, type ContractBudget, createSignatureCheck } from '../../usdc/checks.ts';
import type { Evidence } from '../../usdc/evidence.ts';
import { domainSeparator, USDC_DOMAIN } from '../../usdc/token.ts';
import { createChannelBook } from './channel-book.ts';
import { createClaimRisk } from './claim-risk.ts';
import { claimLimits } from './claim-rows.ts';
import type { ClaimReport } from './claims.ts';
import { createContractProbe } from './contract-probe.ts';
import { createDepositLimits } from './deposit-limits.ts';
import { channelEntry, channelsInfo, DEPOSIT_SECONDS, SCHEME } from './describe.ts';
import { reason } from './payload.ts';
import { createChannelsRail } from './rail.ts';
import { createRefund } from './refund.ts';
import { createScheme, SETTLEMENT_BYTES } from './scheme.ts';
import { createSellVoucher } from './sell-voucher.ts';
import { openChannelSettling } from './settling.ts';
import { createSharedChannelReads } from './shared-channel-reads.ts';
import { createTurns } from './turns.ts';
import type { ChannelTerms } from './voucher.ts';

export interface ChannelsNeeds {
  config: Config;
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
  log: {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
    error(detail: object, message: string): void;
  };
}

/** Seconds by which a client's clock may be ahead of ours. */
const CLOCK_SLACK_SECONDS = 120;
/** How long a stop waits for the last claims, in milliseconds: half of what a stop may take (`src/http/lifecycle.ts`). */
const LAST_CLAIMS_MS = 5000;

/** The rail, and what a command asks of it. */
export interface OpenChannels extends OpenRail {
  /**
   * Claims everything that was charged, however little, and reports it. Rejects in a process that does not settle, and when the chain or the ledger
   * cannot be read.
   */
  claimAll(signal: AbortSignal): Promise<ClaimReport>;
}

/** Opens payment channels: deposits and claims through our relayer, vouchers by the ledger alone. */
export function openChannels(needs: ChannelsNeeds, status: RailStatus): OpenChannels {
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
  /** The settlement in this process. Another process looks for new refunds by itself. */
  let here: ReturnType<typeof openChannelSettling> | null = null;
  return {
    info: channelsInfo,
    recognises: (accepted) => accepted.scheme === SCHEME,
    purchase: openPurchase(needs, status, { channels, scheme, terms, onBegun: () => here?.wake() }),
    openSettling: (settling) => {
      here = openChannelSettling(
        { ...needs, store: needs.channels, channels, scheme, terms, probe, network, sender, waitMs: LAST_CLAIMS_MS },
        settling,
      );
      return here.rail;
    },
    claimAll: async (signal) => {
      if (!here) throw new Error('this process does not settle');
      return here.claimAll(signal);
    },
  };
}

interface Parts {
  channels: ChannelsConfig;
  scheme: ReturnType<typeof createScheme>;
  terms: ChannelTerms;
  onBegun(): void;
}

function openPurchase(
  needs: ChannelsNeeds,
  status: RailStatus,
  { channels, scheme, terms, onBegun }: Parts,
): PurchaseRail {
  const { config, ledger, balanceContracts, check, evidence, clock, log } = needs;
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
  const turns = createTurns(clock);
  const limits = claimLimits(channels);
  const key = hexToBytes(channels.authorizerKey);
  const sign = (digest: Uint8Array) => signRecoverable(digest, key);
  return createChannelsRail({
    ...{ store, ledger, balanceContracts, check, evidence, status, book, scheme, terms, network, clock },
    requirement: channelEntry(channels),
    checkSignature: createDepositCheck(needs, status),
    sellVoucher: createSellVoucher({
      ...{ store, ledger, book, turns, status, limits, network, clock, log },
      risk: createClaimRisk({ store, network, limits, clock }),
    }),
    refund: createRefund({
      store,
      book,
      turns,
      status,
      scheme,
      sign,
      onBegun,
      network,
      waitMs: config.settleWaitMs,
      clock,
    }),
    limits: createDepositLimits({ store, config: channels, clock }),
    bounds: {
      minDeposit: channels.minDeposit,
      leastValidity: neededValidity(config),
      mostValidity: DEPOSIT_SECONDS + CLOCK_SLACK_SECONDS,
    },
  });
}

/** Checks that the payer signed the deposit for the collector, by key or as a contract. */
function createDepositCheck({ config, ledger, check, contracts }: ChannelsNeeds, status: RailStatus) {
  const { usdc, chainId, caip2 } = config.network;
  const separator = domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, chainId, hexToBytes(usdc));
  const digestOf = (authorization: Authorization) => receiveDigest(authorization, separator);
  const hasPaid = (authorization: Authorization) =>
    ledger.hasSettled(paymentKey(authorization, caip2, SETTLEMENT_BYTES));
  const checkSignature = createSignatureCheck({ check, digestOf, status, hasPaid, contracts });
  return (...[{ authorization }, asker]: Parameters<PurchaseRail['checkSignature']>) =>
    checkSignature(authorization, asker).catch((error) => {
      throw error instanceof PaymentRefused ? new PaymentRefused(reason('receive_authorization_signature')) : error;
    });
}
