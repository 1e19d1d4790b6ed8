import type { ChainClient } from '../../../chain/rpc/client.ts';
import type { ChannelsConfig } from '../../../config/rails.ts';
import { allTried } from '../../../lib/all-tried.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import { createRounds } from '../../../lib/rounds.ts';
import type { ChannelStore } from '../../../store/ports/channels.ts';
import type { RelayerMetrics } from '../../relayer/metrics.ts';
import type { RailProbe, RailSettling, SettlingTerms } from '../../settler.ts';
import { createTransferBooks } from '../../usdc/books.ts';
import type { Evidence } from '../../usdc/evidence.ts';
import { createChannelBooks } from './channel-books.ts';
import { createChannelPruning } from './channel-pruning.ts';
import { createChannelReader } from './channel-reader.ts';
import { createClaimAlarm } from './claim-alarm.ts';
import { claimLimits } from './claim-rows.ts';
import { createClaims } from './claims.ts';
import { channelsInfo } from './describe.ts';
import { createRefundOperations } from './refund-operations.ts';
import { type Scheme, SETTLEMENT_BYTES } from './scheme.ts';
import { publishUnclaimed } from './unclaimed-metrics.ts';
import type { ChannelTerms } from './voucher.ts';
import { createWithdrawalAlarms } from './withdrawal-alarms.ts';
import { createWithdrawalWatch } from './withdrawal-watch.ts';

/** How often open refunds are looked for, in milliseconds: another process may have stored one. */
const REFUNDS_MS = 1000;

interface ChannelSettlingOptions {
  readonly store: ChannelStore;
  /** Its requests have the rank `settle`, where none is named. */
  readonly chain: ChainClient;
  readonly evidence: Evidence;
  readonly scheme: Scheme;
  readonly terms: ChannelTerms;
  readonly channels: ChannelsConfig;
  readonly network: string;
  /** The relayer's address, which simulations use as the sender. */
  readonly sender: `0x${string}`;
  readonly probe: () => Promise<RailProbe>;
  /** How long a stop waits for the last claims, in milliseconds. */
  readonly waitMs: number;
  readonly metrics?: RelayerMetrics | undefined;
  readonly clock: Clock;
  readonly log: {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
    error(detail: object, message: string): void;
  };
}

/** A channel's settlement in the process that settles: deposits, refunds, claims, and the watch over withdrawals. */
export function openChannelSettling(options: ChannelSettlingOptions, settling: SettlingTerms) {
  const { store, chain, evidence, channels, network, terms, probe, clock, log } = options;
  const relayer = settling.relaying(channelsInfo.name);
  const stopping = new AbortController();
  const reader = createChannelReader(chain);
  const { receiver, token } = terms;
  const parts = { ...options, relayer, reader, receiver, token, fencingToken: settling.fencingToken };
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

  const { unavailable, cannotSend = unavailable } = relayer.settler;
  const rail: RailSettling = {
    settler: {
      ...relayer.settler,
      unavailable: () => unavailable() ?? alarm.why(),
      cannotSend: () => cannotSend() ?? alarm.why(),
      /** An instance of several sends no last claims: it gives its lease up before it stops, and the next leader claims. */
      stop: async () => {
        stopping.abort();
        if (settling.fencingToken === undefined) await claimLast(claims, options);
      },
    },
    evidence,
    ownOnly: false,
    books: openChannelBooks(options),
    probe: async () => {
      const why = alarm.whyStopped();
      return why === null ? probe() : { ok: false, detail: why };
    },
    load: async () => void lookForRefunds(refunds, options, stopping.signal),
    /**
     * A round where the contracts are not found reads nothing. It does not wait for the claims that it begins: a claim may wait long for its block, and
     * the next rounds watch, probe and read the relayer's gas meanwhile.
     */
    refresh: async () => {
      if (!(await probe()).ok) return;
      const watched = withdrawals.run();
      // After the watch, so that the claims see the withdrawals that it saw. A watch that fails stops no claims.
      void watched.catch(() => {}).then(claimDue);
      await allTried([watched, prune()]);
    },
  };
  return {
    rail,
    wake: () => void refunds.run().catch(() => {}),
    claimAll: async (signal: AbortSignal) => {
      const { ok, detail } = await probe();
      if (!ok) throw new Error(`payment channels cannot be claimed: ${detail}`);
      return claims.run(true, signal);
    },
  };
}

/** Deposits are compared as transfers that the contract passed on, and the claims with what the contract recorded. */
function openChannelBooks({ chain, evidence, store, network, terms: { receiver, token } }: ChannelSettlingOptions) {
  return {
    ...createTransferBooks({ chain, evidence, usdc: bytesToHex(token), passedTo: SETTLEMENT_BYTES }),
    ...createChannelBooks({ chain, store, network, receiver, token }),
  };
}

/** Looks for stored refunds each second until the signal aborts. */
async function lookForRefunds(
  refunds: ReturnType<typeof createRefundOperations>,
  { clock, log }: Pick<ChannelSettlingOptions, 'clock' | 'log'>,
  stopping: AbortSignal,
): Promise<void> {
  while (!stopping.aborted) {
    await refunds.run().catch((err) => log.warn({ err }, 'refunds wait'));
    await clock.sleep(REFUNDS_MS, stopping).catch(() => {});
  }
}

/** Claims what is open before the service stops, as far as that is done in time. */
async function claimLast(
  claims: ReturnType<typeof createClaims>,
  { waitMs, clock, log }: Pick<ChannelSettlingOptions, 'waitMs' | 'clock' | 'log'>,
): Promise<void> {
  const late = new AbortController();
  const claimed = claims
    .run(true, late.signal)
    .catch((err) => log.warn({ err }, 'the last claims wait for the next start'));
  await Promise.race([claimed, clock.sleep(waitMs, late.signal).catch(() => {})]);
  late.abort();
}
