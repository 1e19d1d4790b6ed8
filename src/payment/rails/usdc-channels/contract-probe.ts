import type { ChainClient } from '../../../chain/rpc/client.ts';
import { data, parseAnswer } from '../../../chain/rpc/wire.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { ChannelConfig } from '../../../store/ports/channel-state.ts';
import type { RailProbe } from '../../settler.ts';
import { channelIdCalldata } from './calldata.ts';
import { DEPOSIT_COLLECTOR, type Scheme, SETTLEMENT } from './scheme.ts';

/**
 * Looks for the scheme's contracts at their canonical addresses. Payment channels are offered once both are found and the settlement contract computes
 * the same channel id as we do for `sample`. What was found stays found: the contract has no owner and cannot be replaced. Never rejects.
 */
export function createContractProbe(
  chain: Pick<ChainClient, 'request'>,
  scheme: Scheme,
  sample: ChannelConfig,
): () => Promise<RailProbe> {
  let isFound = false;

  async function fault(): Promise<string | null> {
    for (const address of [SETTLEMENT, DEPOSIT_COLLECTOR]) {
      const code = await chain.request('eth_getCode', [address, 'latest'], { rank: 'collect' });
      if (code === '0x') return `no contract stands at ${address}`;
    }
    const call = { to: SETTLEMENT, data: channelIdCalldata(sample) };
    const raw = await chain.request('eth_call', [call, 'latest'], { rank: 'collect' });
    const isOurs = parseAnswer(data, raw, 'channel id') === bytesToHex(scheme.channelId(sample));
    return isOurs ? null : `the contract at ${SETTLEMENT} computes other channel ids`;
  }

  return async () => {
    if (isFound) return { ok: true };
    const found = await fault().catch(() => 'the chain could not be read');
    isFound = found === null;
    return found === null ? { ok: true } : { ok: false, detail: found };
  };
}
