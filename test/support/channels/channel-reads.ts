import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { SETTLEMENT } from '../../../src/payment/channels/scheme.ts';
import { type Answer, call } from '../service/service.ts';
import { until } from '../service/workers.ts';
import { decoded } from '../usdc/buyer.ts';
import type { ChannelBuyer } from './channel-buyer.ts';

/** A channel as the contract has it, in base units. `balance`: deposits less refunds and withdrawals. */
export async function channelOnChain(network: EmbeddedNetwork, id: Uint8Array) {
  // channels(bytes32) returns the balance and the recorded claims.
  const data = `0x7a7ebd7b${bytesToHex(id).slice(2)}`;
  const words = (await network.rpc<string>('eth_call', [{ to: SETTLEMENT, data }, 'latest'])).slice(2);
  return { balance: BigInt(`0x${words.slice(0, 64)}`), claimed: BigInt(`0x${words.slice(64)}`) };
}

/** The channel's charges that a corrective 402 tells, in base units; 0 where it tells of no channel. */
export function chargedIn(answer: Answer): bigint {
  const { accepts } = decoded(answer, 'payment-required') as {
    accepts: { extra: { channelState?: { chargedCumulativeAmount: string } } }[];
  };
  const state = accepts.find(({ extra }) => extra.channelState)?.extra.channelState;
  return BigInt(state?.chargedCumulativeAmount ?? 0);
}

/** What the seller says that the channel's calls have cost, once exactly that is claimed on the chain. Asks with a voucher over nothing, which buys nothing. */
export async function chargedAndClaimed(network: EmbeddedNetwork, url: string, buyer: ChannelBuyer): Promise<bigint> {
  const { origin, pathname, search } = new URL(url);
  const headers = { 'payment-signature': buyer.voucher(0n) };
  const charged = chargedIn(await call(origin, pathname + search, { headers }));
  await until(
    `${charged} base units are claimed`,
    async () => (await channelOnChain(network, buyer.id)).claimed === charged,
  );
  return charged;
}
