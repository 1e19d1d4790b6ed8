/** A channel by name, with the sales that it paid and the open row that holds it. */
interface ModelChannel {
  charged: bigint;
  writtenOff: bigint;
  balance: bigint;
  claimed: bigint;
  block: number;
  depositBlock: number;
  deposit: { readonly id: string; readonly max: bigint; readonly price: bigint; readonly amount: bigint } | null;
  refund: string | null;
  /** Since when each sale waits, by the voucher's amount. */
  sold: { readonly max: bigint; readonly at: number }[];
  unclaimedSince: number | null;
}

const left = ({ charged, claimed, writtenOff }: ModelChannel): bigint => charged - claimed - writtenOff;
const most = (one: bigint, other: bigint): bigint => (one > other ? one : other);
const least = (one: bigint, other: bigint): bigint => (one < other ? one : other);

/** A model of the channels' store in a map, without a disk. Its calls run one after the other. */
export function createChannelModel() {
  const channels = new Map<string, ModelChannel>();
  const of = (name: string) => channels.get(name);
  const isHeld = ({ deposit, refund }: ModelChannel): boolean => deposit !== null || refund !== null;
  const isSold = ({ sold }: ModelChannel, max: bigint): boolean => sold.some((sale) => sale.max === max);

  function sell(channel: ModelChannel, max: bigint, at: number): void {
    channel.charged = max;
    channel.sold.push({ max, at });
    channel.unclaimedSince ??= at;
  }

  return {
    channels,
    note(name: string, { balance, claimed, block }: { balance: bigint; claimed: bigint; block: number }): void {
      const known = of(name);
      if (!known) {
        const empty = { depositBlock: 0, deposit: null, refund: null, sold: [], unclaimedSince: null };
        channels.set(name, { charged: claimed, writtenOff: 0n, balance, claimed, block, ...empty });
        return;
      }
      if (block < Math.max(known.block, known.depositBlock)) return;
      known.charged = most(known.charged, claimed);
      known.writtenOff = least(known.writtenOff, known.charged - claimed);
      Object.assign(known, { balance, claimed, block });
      const first = known.sold.filter(({ max }) => max > claimed).sort((a, b) => (a.max < b.max ? -1 : 1))[0];
      known.unclaimedSince = left(known) === 0n ? null : (first?.at ?? known.unclaimedSince);
    },
    charge(name: string, max: bigint, price: bigint, at: number): boolean {
      const channel = of(name);
      if (!channel || isHeld(channel) || isSold(channel, max)) return false;
      if (channel.charged !== max - price || max > channel.balance) return false;
      sell(channel, max, at);
      return true;
    },
    deposit(name: string, deposit: NonNullable<ModelChannel['deposit']>): boolean {
      const channel = of(name);
      if (!channel || isHeld(channel) || isSold(channel, deposit.max)) return false;
      channel.deposit = deposit;
      return true;
    },
    settle(name: string, block: number, at: number): boolean {
      const channel = of(name);
      if (!channel?.deposit) return false;
      if (channel.block < block) channel.balance += channel.deposit.amount;
      channel.depositBlock = Math.max(channel.depositBlock, block);
      sell(channel, channel.deposit.max, at);
      channel.deposit = null;
      return true;
    },
    drop(name: string): boolean {
      const channel = of(name);
      if (!channel?.deposit) return false;
      channel.deposit = null;
      return true;
    },
    refund(name: string, id: string, charged: bigint): boolean {
      const channel = of(name);
      if (!channel || isHeld(channel) || channel.charged !== charged) return false;
      channel.refund = id;
      return true;
    },
    endRefund(name: string): boolean {
      const channel = of(name);
      if (!channel?.refund) return false;
      channel.refund = null;
      return true;
    },
    writeOff(name: string, amount: bigint, upTo: bigint): boolean {
      const channel = of(name);
      if (!channel || channel.charged !== upTo || amount > left(channel)) return false;
      channel.writtenOff += amount;
      if (left(channel) === 0n) channel.unclaimedSince = null;
      return true;
    },
    left: (name: string): bigint => left(of(name) as ModelChannel),
  };
}
