import { privateKeyToAccount } from 'viem/accounts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { SETTLEMENT } from '../../../src/payment/channels/scheme.ts';
import type { ChannelBuyer } from '../channels/channel-buyer.ts';
import { createChannelStage } from '../channels/channel-contract.ts';
import { configJson } from '../channels/channel-payment.ts';
import { channelOnChain } from '../channels/channel-reads.ts';
import { call } from '../service/service.ts';
import { until } from '../service/workers.ts';
import {
  BEHIND_BLOCKS,
  behind,
  CLAIMED,
  channelIs,
  claimedBy,
  deniedCall,
  farAhead,
  hiddenWithdrawal,
  hourAhead,
  inventedClaim,
  inventedRefund,
  inventedWithdrawal,
  together,
} from './lies.ts';
import type { Lie } from './lying-provider.ts';
import { DEPOSIT, depositOrder, type Lies, newChannel, PRICE, voucherOrder } from './lying-sales.ts';
import { isSoon, presentTimes, type Stage, untilServed } from './lying-world.ts';

// What a lying provider may say about channels that exist, or do not.

/** Presentations of an attacker while the lie lasts. */
const TRIES = 4;

/** A channel that an honest buyer has put money into, before anybody lied. */
async function openChannel(stage: Stage) {
  const { buyer, privateKey } = await newChannel(stage, DEPOSIT);
  const { salt: _, ...order } = depositOrder(stage, buyer);
  await untilServed(stage, stage.honest(order));
  let charged = PRICE;
  return {
    buyer,
    privateKey,
    charged: (): bigint => charged,
    /** Buys a call by the next voucher. */
    buy: async (): Promise<void> => {
      const one = stage.honest(voucherOrder(stage, buyer, charged + PRICE));
      await untilServed(stage, one);
      if (one.servedMs !== null) charged += PRICE;
    },
  };
}

type Channel = Awaited<ReturnType<typeof openChannel>>;

/**
 * Vouchers of a channel that nobody has put money into. What was believed once must not sell after a restart either.
 */
async function unfunded(stage: Stage, at: Lie): Promise<void> {
  const { buyer } = await newChannel(stage, 0n);
  stage.liar.lie(together(channelIs(buyer.id, { balance: DEPOSIT }), at));
  const attack = async (calls: bigint): Promise<void> =>
    presentTimes(stage.attack(voucherOrder(stage, buyer, calls * PRICE)), TRIES);
  for (const calls of [1n, 2n]) await attack(calls);
  const other = await openChannel(stage);
  await other.buy();
  stage.liar.lie(null);
  await stage.restart();
  for (const calls of [2n, 3n]) await attack(calls);
}

/** The liar says that a channel holds nothing. The service reads it at its start. */
async function lower(stage: Stage, at: Lie): Promise<void> {
  const channel = await openChannel(stage);
  stage.liar.lie(together(channelIs(channel.buyer.id, { balance: 0n }), at));
  await stage.restart();
  await untilWatched(stage);
  for (let calls = 0; calls < 2; calls++) await channel.buy();
}

/** Resolves when the watch over withdrawals has read the logs twice more, wherever. */
async function untilWatched({ providers }: Stage): Promise<void> {
  const reads = () => providers.reduce((sum, provider) => sum + (provider.counts().eth_getLogs ?? 0), 0);
  const before = reads();
  await until('withdrawals are watched', () => reads() >= before + 2);
}

/** Whether exactly what was charged is claimed on the true chain, soon. */
const isClaimed = (stage: Stage, { buyer, charged }: Channel): Promise<boolean> =>
  isSoon(stage, async () => (await channelOnChain(stage.network, buyer.id)).claimed === charged());

/** The payer asks for all its money on the true chain, and the liar hides it. What is charged must be claimed. */
async function hidden(stage: Stage): Promise<void> {
  const channel = await openChannel(stage);
  await channel.buy();
  const { buyer, privateKey } = channel;
  stage.liar.lie(hiddenWithdrawal(buyer.id, DEPOSIT));
  const contract = createChannelStage(stage.network);
  const wallet = await contract.walletOf(privateKeyToAccount(bytesToHex(privateKey)));
  await contract.call('initiateWithdraw', [configJson(buyer.config), DEPOSIT], wallet);
  if (!(await isClaimed(stage, channel))) stage.breaks('a withdrawal takes what is charged');
}

/** The liar says that the payer asks for its money. The buyer goes on buying, and is claimed early once at the most. */
async function invented(stage: Stage): Promise<void> {
  const channel = await openChannel(stage);
  await channel.buy();
  stage.liar.lie(inventedWithdrawal(channel.buyer.id, DEPOSIT));
  for (let round = 0; round < 3; round++) {
    await untilWatched(stage);
    await channel.buy();
  }
  const claims = await claimsOf(stage, channel.buyer);
  if (claims > 1) stage.breaks(`${claims} early claims of a channel whose payer asked for nothing`);
}

/** The claims of a channel on the true chain. */
async function claimsOf({ network }: Stage, { id }: ChannelBuyer): Promise<number> {
  const filter = { address: SETTLEMENT, topics: [CLAIMED, bytesToHex(id)], fromBlock: '0x0', toBlock: 'latest' };
  return (await network.rpc<unknown[]>('eth_getLogs', [filter])).length;
}

/** An honest buyer goes on buying by vouchers, also after a restart. */
async function goesOn(stage: Stage, lie: Lie): Promise<void> {
  const channel = await openChannel(stage);
  await fallBehind(stage, lie);
  for (let calls = 0; calls < 2; calls++) await channel.buy();
  await stage.restart();
  await channel.buy();
}

/**
 * The chain takes the deposit back, and no provider lies. The channel must stop selling, once its deposit was looked
 * at again.
 */
async function reorganised(stage: Stage): Promise<void> {
  const { network, path } = stage;
  const { buyer } = await newChannel(stage, DEPOSIT);
  const before = Number(await network.rpc<string>('eth_blockNumber', []));
  const { salt: _, ...order } = depositOrder(stage, buyer);
  await untilServed(stage, stage.honest({ ...order, hasMoved: async () => true }));
  await network.pauseMining();
  await network.rpc('anvil_rollback', [Number(await network.rpc<string>('eth_blockNumber', [])) - before]);
  await network.resumeMining();
  if ((await channelOnChain(network, buyer.id)).balance > 0n) throw new Error('the deposit is still there');
  let charged = PRICE;
  const isRefused = async (): Promise<boolean> => {
    const headers = { 'payment-signature': buyer.voucher(charged + PRICE) };
    const { status } = await call(stage.origin(), `${path}?tag=${charged}`, { headers });
    if (status === 200) charged += PRICE;
    return status !== 200;
  };
  if (!(await isSoon(stage, isRefused))) stage.breaks('a channel sells on although the chain took its deposit back');
}

/** Begins a lie about heads. A provider that falls behind has what was there before. */
async function fallBehind({ network, liar }: Stage, lie: Lie): Promise<void> {
  if (lie === behind) await network.mine(BEHIND_BLOCKS + 20);
  liar.lie(lie);
}

/** Transactions of one claim at the most: the first, and one in its place at a higher fee. */
const MOST_OF_A_CLAIM = 2;

/** Notes a claim that was sent again and again. The contract skips what it has recorded, and each costs gas. */
function countClaims({ seen, breaks }: Stage, { buyer }: Channel): void {
  const totals = [...seen.values()].flatMap((raw) => claimedBy(raw, buyer.config.salt) ?? []);
  for (const [total, sent] of Map.groupBy(totals, (each) => each))
    if (sent.length > MOST_OF_A_CLAIM) breaks(`a claim of ${total} in all is sent ${sent.length} times`);
}

/** All that is charged while the liar speaks is claimed on the true chain, at the latest when it has become silent. */
async function claimed(stage: Stage, lie: (channel: Channel) => Lie): Promise<void> {
  const channel = await openChannel(stage);
  await fallBehind(stage, lie(channel));
  for (let calls = 0; calls < 2; calls++) await channel.buy();
  if (!(await isClaimed(stage, channel))) stage.breaks('what is charged is not claimed while one provider lies');
  await untilWatched(stage);
  countClaims(stage, channel);
  stage.liar.lie(null);
  await stage.restart();
  await channel.buy();
  if (!(await isClaimed(stage, channel))) stage.breaks('what is charged is not claimed after the lie');
}

/** A buyer asks for its money. An answer must be true; without one the money comes later. */
async function refunded(stage: Stage, lie: (channel: Channel) => Lie): Promise<void> {
  const channel = await openChannel(stage);
  await channel.buy();
  await fallBehind(stage, lie(channel));
  const { buyer, charged } = channel;
  const hasMoved = async () => (await channelOnChain(stage.network, buyer.id)).balance < DEPOSIT;
  const headers = { 'payment-signature': buyer.refund(charged()) };
  const answer = await call(stage.origin(), stage.path, { headers });
  if (answer.status === 200 && !(await hasMoved())) stage.breaks('a refund that never was is confirmed');
  if (answer.status === 402)
    stage.breaks((await hasMoved()) ? 'a refund that has moved is denied' : 'a refund is refused');
  stage.liar.lie(null);
  await stage.restart();
  if (!(await isSoon(stage, hasMoved))) stage.breaks('a refund never comes');
}

/** The lies about channels while vouchers are sold. */
export const VOUCHERS: Lies = {
  'channel state': (stage) => unfunded(stage, {}),
  'channel state an hour ahead': (stage) => unfunded(stage, hourAhead),
  'channel state at 2^52': (stage) => unfunded(stage, farAhead),
  'a lower balance': (stage) => lower(stage, {}),
  'a lower balance an hour ahead': (stage) => lower(stage, hourAhead),
  'hidden withdrawal': hidden,
  'invented withdrawal': invented,
  reorganised,
  'two minutes behind': (stage) => goesOn(stage, behind),
  'head of 2^52': (stage) => goesOn(stage, farAhead),
};

const saltOf = ({ buyer }: Channel): Uint8Array => buyer.config.salt;

/** The lies about claims. */
export const CLAIMS: Lies = {
  'receipt of a claim that never was': (stage) =>
    claimed(stage, ({ buyer }) => inventedClaim(buyer.id, buyer.config, DEPOSIT)),
  'denial of a claim': (stage) =>
    claimed(stage, (channel) =>
      together(channelIs(channel.buyer.id, { balance: DEPOSIT }), deniedCall(saltOf(channel))),
    ),
  'channel state an hour ahead': (stage) =>
    claimed(stage, ({ buyer }) => together(channelIs(buyer.id, { balance: 0n }), hourAhead)),
  'two minutes behind': (stage) => claimed(stage, () => behind),
  'head of 2^52': (stage) => claimed(stage, () => farAhead),
};

/** The lies about refunds. */
export const REFUNDS: Lies = {
  'receipt of a refund that never was': (stage) =>
    refunded(stage, ({ buyer, charged }) =>
      inventedRefund(buyer.id, buyer.config, { charged: charged(), deposit: DEPOSIT }),
    ),
  'denial of a refund': (stage) => refunded(stage, (channel) => deniedCall(saltOf(channel))),
  'two minutes behind': (stage) => refunded(stage, () => behind),
  'head of 2^52': (stage) => refunded(stage, () => farAhead),
};
