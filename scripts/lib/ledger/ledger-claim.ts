import { systemClock as clock } from '../../../src/lib/clock.ts';
import { formatUnits, USDC_DECIMALS } from '../../../src/lib/units.ts';
import type { ClaimReport } from '../../../src/payment/channels/claims.ts';
import { channelsInfo, type OpenChannels, openChannels } from '../../../src/payment/channels/rail.ts';
import { RAILS, type RailList } from '../../../src/wiring/rails.ts';
import { type StoppedService, withHeldLedger, withPayments } from './stopped-service.ts';

const CLAIMS_ITSELF = 'it claims by itself, also when it stops; to do it by hand, stop it first';

/**
 * Claims everything that was charged to payment channels, with the service's own parts, and prints what was claimed. Returns whether nothing is left
 * to claim. Throws while a service uses the ledger, where payment channels are off, and when the chain or the ledger cannot be read.
 */
export function claimChannels(service: StoppedService): Promise<boolean> {
  const { timeoutMs, print, say } = service;
  return withHeldLedger(service, CLAIMS_ITSELF, async (held) => {
    if (!held.config.rails.channels)
      throw new Error('payment channels are off (CHANNELS=on and their keys are needed)');
    const totals = () => held.ledger.stores.channels.totals(held.config.network.caip2);
    const before = await totals();
    const { railList, claimAll } = channelsAlone();
    const report = await withPayments(held, () => within(timeoutMs, claimAll), railList);
    if (!report) say('the claims did not end in time; the next start goes on with them');
    const after = await totals();
    const left = after.charged - after.claimed - after.writtenOff;
    for (const line of claimText(after.claimed - before.claimed, report, left)) print(line);
    return report !== null && left === 0n;
  });
}

/** What a claim did, one fact a line. `report` is null when the claim did not end in time. Amounts in base units of USDC. */
function claimText(claimed: bigint, report: ClaimReport | null, left: bigint): string[] {
  const usdc = (amount: bigint): string => `${formatUnits(amount, USDC_DECIMALS)} USDC`;
  const lines = [`claimed ${usdc(claimed)}`];
  if (report) lines.push(`written off ${usdc(report.writtenOff)}`, `channels set aside: ${report.setAside}`);
  return [...lines, `left unclaimed ${usdc(left)}`];
}

/** All rails, and payment channels without their rounds: the command claims once, and its report misses nothing. */
function channelsAlone() {
  let channels: OpenChannels | null = null;
  const [first, ...others] = RAILS;
  const railList: RailList = [first, ...others.map((rail) => (rail.info === channelsInfo ? { ...rail, open } : rail))];

  function open(...given: Parameters<typeof openChannels>): OpenChannels {
    const opened = openChannels(...given);
    channels = opened;
    return { ...opened, openSettler: (context) => ({ ...opened.openSettler(context), refresh: async () => {} }) };
  }

  return {
    railList,
    claimAll: (signal: AbortSignal) => {
      if (!channels) throw new Error('payment channels are not open');
      return channels.claimAll(signal);
    },
  };
}

/** The result of `work`; null when it takes longer. Its end is then not waited for. */
async function within<T>(timeoutMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T | null> {
  const late = new AbortController();
  const result = work(late.signal);
  try {
    return await Promise.race([result, clock.sleep(timeoutMs, late.signal).then(() => null)]);
  } finally {
    late.abort(new Error('the command gave up'));
    result.catch(() => {});
  }
}
