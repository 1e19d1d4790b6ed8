import type { ChainClient } from '../../../chain/rpc/client.ts';
import { data, parseAnswer } from '../../../chain/rpc/wire.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { ChannelConfig } from '../../../store/ports/channel-state.ts';
import { DEPOSIT_COLLECTOR, type Scheme, SETTLEMENT } from './scheme.ts';

interface ContractWatchOptions {
  chain: Pick<ChainClient, 'request'>;
  scheme: Scheme;
  /** A channel that could be opened here. */
  sample: ChannelConfig;
  /** Calldata of `getChannelId` for a config. */
  channelIdCalldata(config: ChannelConfig): `0x${string}`;
  log: { info(detail: object, message: string): void; warn(detail: object, message: string): void };
}

const NOT_READ = 'the contracts of payment channels were not looked for yet';

/**
 * Looks for the scheme's contracts at their canonical addresses. Payment channels are not offered until both are found, and until the settlement
 * contract computes the same channel id as we do. What was found once stays: a contract without an owner does not change.
 */
export function createContractWatch({ chain, scheme, sample, channelIdCalldata, log }: ContractWatchOptions) {
  let fault: string | null = NOT_READ;

  async function look(): Promise<string | null> {
    for (const address of [SETTLEMENT, DEPOSIT_COLLECTOR]) {
      const code = await chain.request('eth_getCode', [address, 'latest'], { rank: 'collect' });
      if (code === '0x') return `no contract stands at ${address}`;
    }
    const call = { to: SETTLEMENT, data: channelIdCalldata(sample) };
    const answer = parseAnswer(data, await chain.request('eth_call', [call, 'latest'], { rank: 'collect' }), 'channel id');
    const isOurs = answer === bytesToHex(scheme.channelId(sample));
    return isOurs ? null : `the contract at ${SETTLEMENT} computes other channel ids`;
  }

  return {
    /** Why payment channels cannot be offered; null once the contracts are found. */
    fault: (): string | null => fault,
    /** Looks once more, until the contracts are found. Rejects when the chain cannot be read. */
    refresh: async (): Promise<void> => {
      if (fault === null) return;
      const found = await look();
      if (found === null) log.info({ contract: SETTLEMENT }, 'payment channels are offered');
      else if (found !== fault) log.warn({ reason: found }, 'payment channels are not offered');
      fault = found;
    },
  };
}
