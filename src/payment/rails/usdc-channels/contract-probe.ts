import type { ChainClient } from '../../../chain/rpc/client.ts';
import { data, type RpcOutcome, readOutcome } from '../../../chain/rpc/wire.ts';
import { UpstreamFailed } from '../../../errors.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { ChannelConfig } from '../../../store/ports/channel-state.ts';
import type { RailProbe } from '../../settler.ts';
import { channelIdCalldata } from './calldata.ts';
import { DEPOSIT_COLLECTOR, type Scheme, SETTLEMENT } from './scheme.ts';

/**
 * Looks for the scheme's contracts at their canonical addresses. Payment channels are offered once both are found and the settlement contract computes
 * the same channel id as we do for `sample`. What was found stays found: the contract has no owner and cannot be
 * replaced. Never rejects. Each provider is
 * asked, and one that does not find them decides nothing: without the contracts nobody would watch withdrawals.
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
    if (faults.length === 0) throw new UpstreamFailed('chain', 'the contracts could not be read');
    return missing.length < faults.length && missing.length < 2 ? null : (missing[0] ?? null);
  }

  return async () => {
    if (isFound) return { ok: true };
    const found = await fault().catch(() => 'the chain could not be read');
    isFound = found === null;
    return found === null ? { ok: true } : { ok: false, detail: found };
  };
}
