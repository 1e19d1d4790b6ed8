import type { ChainClient } from '../../chain/rpc/client.ts';
import { data, type RpcOutcome, readOutcome } from '../../chain/rpc/wire.ts';
import type { Clock } from '../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Log } from '../../lib/log.ts';
import { allTried, createRounds } from '../../lib/tasks.ts';
import type { ChannelConfig } from '../../store/ports/channel-state.ts';
import type { ChannelStore } from '../../store/ports/channels.ts';
import type { RelayerMetrics } from '../relayer/metrics.ts';
import type { RailProbe, Settler, SettlerContext } from '../settler.ts';
import { createTransferBooks } from '../usdc/books.ts';
import type { Evidence } from '../usdc/evidence.ts';
import { createChannelBooks } from './books.ts';
import { channelIdCalldata } from './calldata.ts';
import { type ChannelSetup, createChannelPruning, createChannelReader } from './channel.ts';
import { claimLimits, createClaimAlarm, createWithdrawalAlarms, publishUnclaimed } from './claim-health.ts';
import { createClaims } from './claims.ts';
import { createRefundOperations } from './refund-sending.ts';
import { DEPOSIT_COLLECTOR, RAIL, type Scheme, SETTLEMENT, SETTLEMENT_BYTES } from './scheme.ts';
import { createWithdrawalWatch } from './withdrawals.ts';

// What settles channels, put together: our relayer, which sends deposits as any payment; the rounds of refunds, the
// watch, claims and pruning; the books; and the probe for the contracts, before which nothing is offered.

/** Milliseconds that a stop waits for the last claims: half of what a stop may take (`src/http/lifecycle.ts`). */
const LAST_CLAIMS_MS = 5000;

interface ChannelsSettlerOptions {
  readonly setup: ChannelSetup;
  readonly store: ChannelStore;
  readonly chain: ChainClient;
  readonly evidence: Evidence;
  readonly sender: `0x${string}`;
  readonly probe: () => Promise<RailProbe>;
  readonly metrics: RelayerMetrics | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export function openChannelsSettler(options: ChannelsSettlerOptions, context: SettlerContext) {
  const { setup, store, chain, evidence, probe, metrics, clock, log } = options;
  const { channels, network, scheme, terms } = setup;
  const { receiver, token } = terms;
  const { withdrawDelaySeconds } = channels;
  const relayer = context.relayer(RAIL);
  const stopping = new AbortController();
  const reader = createChannelReader(chain);
  const parts = { ...options, network, scheme, relayer, reader, receiver, token, fencingToken: context.fencingToken };
  const limits = claimLimits(channels);
  const alarms = createWithdrawalAlarms(clock);
  const alarm = createClaimAlarm({ store, network, limits, clock, log });
  const authorizerKey = hexToBytes(channels.authorizerKey);
  const claims = createClaims({ ...parts, relayer: alarm.watching(relayer), authorizerKey, limits, alarms });
  if (metrics) publishUnclaimed(metrics, store, network, alarms);
  const refunds = createRefundOperations(parts);
  const claimDue = createRounds(() => alarm.round(() => claims.run(false, stopping.signal)), log);
  const prune = createChannelPruning(store, clock);
  const withdrawals = createWithdrawalWatch({ ...parts, alarms, withdrawDelaySeconds });

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
    load: async () => void refunds.keepRunning(stopping.signal),
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
function openChannelBooks({ chain, evidence, store, setup: { network, terms } }: ChannelsSettlerOptions) {
  const { receiver, token } = terms;
  return {
    ...createTransferBooks({ chain, evidence, usdc: bytesToHex(token), passedTo: SETTLEMENT_BYTES }),
    ...createChannelBooks({ chain, store, network, receiver, token }),
  };
}

/** Claims what is open before a stop, as far as that is done in time. */
async function claimLast(
  claims: ReturnType<typeof createClaims>,
  { clock, log }: Pick<ChannelsSettlerOptions, 'clock' | 'log'>,
): Promise<void> {
  const late = new AbortController();
  const claimed = claims
    .run(true, late.signal)
    .catch((err) => log.warn({ err }, 'the last claims wait for the next start'));
  await Promise.race([claimed, clock.sleep(LAST_CLAIMS_MS, late.signal).catch(() => {})]);
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
