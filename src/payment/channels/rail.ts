import type { ChainClient } from '../../chain/rpc/client.ts';
import type { Config } from '../../config.ts';
import { hexToBytes } from '../../lib/hex.ts';
import { addressOf, signRecoverable } from '../../lib/secp256k1.ts';
import type { ChannelStore } from '../../store/ports/channels.ts';
import type { Sold } from '../call.ts';
import { hashRequest } from '../ledger.ts';
import { askerOf, checkFailures, counted } from '../limits.ts';
import type { Credential } from '../protocol.ts';
import type { MakeRequirement, RailInfo, UsdcCall, UsdcRail } from '../rail.ts';
import type { RelayerMetrics } from '../relayer/gas.ts';
import type { Wallet } from '../relayer/transactions.ts';
import type { SaleContext } from '../sale.ts';
import type { SettlerStatus } from '../settler.ts';
import { USDC_DOMAIN } from '../usdc/token.ts';
import {
  type ChannelContext,
  type ChannelMessage,
  type ChannelSetup,
  createChannelBook,
  createSharedChannelReads,
} from './channel.ts';
import { checkAuthorizer, claimBounds, createClaimRisk } from './claim-health.ts';
import type { ClaimReport } from './claims.ts';
import { createDepositScheme, DEPOSIT_SECONDS, type DepositNeeds, sellDeposit } from './deposit.ts';
import { createRefund } from './refund.ts';
import {
  CHANNEL_REFUSALS,
  type ChannelPayload,
  checkAcceptedTerms,
  checkVoucher,
  createScheme,
  RAIL,
  readPayload,
  SCHEME,
  SETTLEMENT,
  SETTLEMENT_BYTES,
  signerOf,
} from './scheme.ts';
import { createContractProbe, openChannelsSettler } from './settler.ts';
import { createTurns } from './turns.ts';
import { createCorrections, sellForVoucher, type VoucherContext } from './voucher-sale.ts';

// The rail `usdc-channels`: what a 402 says of it, and the sale of its three kinds of message. A deposit is a signed
// payment, a voucher is charged at once, a refund buys nothing. What settles stands in settler.ts.

/** The channel's id depends on recipient, token, authorizer and delay, not on the price. */
export function channelRequirement(config: NonNullable<Config['rails']['channels']>): MakeRequirement {
  const { authorizerKey, withdrawDelaySeconds, minDeposit } = config;
  const extra = {
    ...USDC_DOMAIN,
    receiverAuthorizer: addressOf(hexToBytes(authorizerKey)),
    withdrawDelay: withdrawDelaySeconds,
    minDeposit: minDeposit.toString(),
  };
  return (plain) => ({ ...plain, scheme: SCHEME, maxTimeoutSeconds: DEPOSIT_SECONDS, extra });
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
  requirement: ({ channels }) => {
    if (!channels) throw new Error('payment channels are off');
    return channelRequirement(channels);
  },
  gasOfCall: () => CALL_GAS,
  isOfferedOnceProven: true,
  refusals: CHANNEL_REFUSALS,
  checkLedger: checkAuthorizer,
  service: ({ channels }) => channels && { name: 'channels', isVital: false },
};

interface ChannelsNeeds extends DepositNeeds {
  readonly sales: SaleContext;
  readonly channels: ChannelStore;
  /** Its requests have the rank `settle`, where none is named. */
  readonly chain: ChainClient;
  /** Null where no relayer is configured. */
  readonly wallet: Wallet | null;
  readonly metrics?: RelayerMetrics | undefined;
}

export interface OpenChannels extends UsdcRail {
  /** Claims all charges. Rejects in a process that does not settle, and when chain or ledger cannot be read. */
  claimAll(signal: AbortSignal): Promise<ClaimReport>;
}

export function openChannels(needs: ChannelsNeeds, status: SettlerStatus): OpenChannels {
  const { config, sales, channels: store, chain, evidence, wallet, metrics } = needs;
  const { clock, log } = sales;
  const setup = setUp(config);
  const { scheme, terms } = setup;
  const sample = { ...terms, payer: terms.receiver, payerAuthorizer: terms.receiver, salt: new Uint8Array(32) };
  const probe = createContractProbe(chain, scheme, sample);
  const sender = wallet?.address ?? config.seller;
  /** Null where another process settles, which looks for new refunds by itself. */
  let here: ReturnType<typeof openChannelsSettler> | null = null;
  return {
    info: channelsInfo,
    recognises: (accepted) => accepted.scheme === SCHEME,
    contract: SETTLEMENT_BYTES,
    sell: openSale(needs, openContext(needs, setup, status), () => here?.wake()),
    openSettler: (context) => {
      here = openChannelsSettler({ setup, store, chain, evidence, sender, probe, metrics, clock, log }, context);
      return here.settler;
    },
    claimAll: async (signal) => {
      if (!here) throw new Error('this process does not settle');
      return here.claimAll(signal);
    },
  };
}

function setUp({ rails: { channels }, network, seller }: Config): ChannelSetup {
  if (!channels) throw new Error('payment channels are off');
  const terms = {
    receiver: hexToBytes(seller),
    receiverAuthorizer: hexToBytes(addressOf(hexToBytes(channels.authorizerKey))),
    token: hexToBytes(network.usdc),
    withdrawDelay: channels.withdrawDelaySeconds,
  };
  return { channels, network: network.caip2, scheme: createScheme(network.chainId), terms };
}

function openContext(
  { config, sales, channels: store, chain }: ChannelsNeeds,
  setup: ChannelSetup,
  status: SettlerStatus,
): ChannelContext {
  const { clock } = sales;
  const { network, channels } = setup;
  const { withdrawDelaySeconds } = channels;
  const read = createSharedChannelReads(chain, clock);
  const { lastHead } = chain.agreed;
  const book = createChannelBook({ store, read, network, withdrawDelaySeconds, lastHead, clock });
  const requirement = channelsInfo.requirement(config.rails);
  return { sales, setup, store, book, turns: createTurns(clock), status, requirement };
}

/** Sells each kind of message in its own way. No kind is known to the core. */
function openSale(needs: ChannelsNeeds, context: ChannelContext, onBegun: () => void): UsdcRail['sell'] {
  const { sales, setup, store } = context;
  const { clock } = sales;
  const { channels, network, scheme } = setup;
  const bounds = claimBounds(channels);
  const risk = createClaimRisk(clock, store, network, bounds);
  const vouchers = { ...context, bounds, risk, corrections: createCorrections(store) };
  const deposits = createDepositScheme(context, needs);
  const key = hexToBytes(channels.authorizerKey);
  const sign = (digest: Uint8Array) => signRecoverable(digest, key);
  const waitMs = needs.config.settleWaitMs;
  const refund = createRefund({ ...context, scheme, network, clock, sign, onBegun, waitMs });
  return async (call, credential) => {
    switch (credential.payload.type) {
      case 'refund':
        return sellRefund(context, refund, call, credential);
      case 'deposit':
        return sellDeposit(context, deposits, call, credential);
      default:
        return sellByVoucher(vouchers, call, credential);
    }
  };
}

/** It runs no endpoint, so the request's parameters are not read. */
async function sellRefund(
  context: ChannelContext,
  refund: ReturnType<typeof createRefund>,
  call: UsdcCall,
  credential: Credential,
): Promise<Sold> {
  const { failures } = context.sales;
  const payload = readPayload(credential.payload);
  const identifier = credential.identifier();
  const signer = signerOf(payload);
  checkFailures(failures, signer, call.client);
  return counted(failures, signer, call, async (watched) =>
    refund({ ...checked(context, payload, watched, credential), identifier }),
  );
}

async function sellByVoucher(context: VoucherContext, call: UsdcCall, credential: Credential): Promise<Sold> {
  const requestHash = hashRequest(call.route, call.params());
  const identifier = credential.identifier();
  const payload = readPayload(credential.payload);
  const { protocol } = credential;
  return counted(context.sales.failures, signerOf(payload), call, async (watched) =>
    sellForVoucher(context, { ...checked(context, payload, watched, credential), identifier, requestHash, protocol }),
  );
}

/** Throws PaymentRefused unless the message is for the requirement's terms and its signer made it. */
function checked(
  { sales, setup, requirement }: ChannelContext,
  payload: ChannelPayload,
  call: UsdcCall,
  credential: Credential,
): Omit<ChannelMessage, 'identifier'> {
  const needed = requirement(call.plain);
  checkAcceptedTerms(credential.accepted ?? needed, needed);
  const channelId = checkVoucher(payload, setup.terms, setup.scheme);
  return { payload, channelId, call, asker: askerOf(sales.failures, call) };
}
