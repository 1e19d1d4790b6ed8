import type { Random } from '../engine/random.ts';
import type { ChannelChange, MoveOf } from '../moves/move.ts';
import type { Presentation, Voucher } from '../record/presentation.ts';
import type { Route } from '../service/catalogue.ts';
import { depositTerms, type SignedDeposit } from '../world/chain/channel-terms.ts';
import { accountOf, twinOf } from '../world/chain/keys.ts';
import type { World } from '../world/world.ts';
import { type ClientChannel, createChannelClient, type Device } from './channel-client.ts';
import type { ChannelOrder, Desk, Wanted, Way } from './desk.ts';

/** A channel of a hostile payer: what its devices know, and what was presented for it. */
export interface HeldChannel extends ClientChannel {
  readonly id: string;
  readonly devices: Map<string, Device>;
  readonly shown: Shown[];
}

/** What was presented once, to be presented again. */
interface Shown {
  readonly voucher: Voucher;
  readonly deposit: SignedDeposit | null;
  readonly units: bigint | null;
  readonly wanted: Wanted;
}

const NOBODY = `0x${'0'.repeat(40)}` as const;

/** Payers who plan, with payment channels: what they hold, and every way of presenting it. */
export function createChannelPayers(world: World, desk: Desk, random: Random) {
  const { payers, catalogue } = world;
  const client = createChannelClient(world, random);
  const held = new Map<string, HeldChannel>();
  let calls = 0;
  const routeOf = (path: string): Route => catalogue.routes.find((route) => route.path === path) as Route;
  const wantedOf = (path: string): Wanted => ({ route: routeOf(path), tag: `v${calls++}` });

  /** The second device begins without a memory. */
  function deviceOf({ devices }: HeldChannel, name: string): Device {
    const known = devices.get(name) ?? { charged: 0n, balance: 0n };
    devices.set(name, known);
    return known;
  }

  async function present(channel: HeldChannel, shown: Shown, way: Way & Identified): Promise<Presentation> {
    const { voucher, deposit, units, wanted } = shown;
    const { channelId, config, payer } = channel;
    const order: ChannelOrder = {
      ...wanted,
      by: payer.name,
      identifier: way.identifier,
      voucher,
      deposit,
      units,
      authorization: deposit && {
        rail: 'channels',
        terms: depositTerms(channelId, config, deposit),
        signature: deposit.signature,
      },
    };
    return desk.presentChannel(order, way);
  }

  async function presentAndLearn(
    channel: HeldChannel,
    device: Device,
    shown: Shown,
    way: Way & Identified,
  ): Promise<'paid' | 'corrected' | 'nothing'> {
    channel.shown.push(shown);
    const { received, reported } = await present(channel, shown, way);
    return received && 'status' in received && reported ? client.learn(device, reported) : 'nothing';
  }

  function open(move: MoveOf<'open channel'>): void {
    const { id, units, route, authorizer, validFor } = move;
    const payer = payers.get(move.payer);
    const authorizers = { itself: payer.address, 'its key': payer.account.address, nobody: NOBODY };
    const channel: HeldChannel = {
      ...client.channelFor(payer, authorizers[authorizer]),
      id,
      devices: new Map(),
      shown: [],
    };
    held.set(id, channel);
    const wanted = wantedOf(route);
    const voucher = client.voucher(channel, 'deposit', wanted.route.price);
    const deposit = client.deposit(channel, BigInt(units), validFor);
    void presentAndLearn(channel, deviceOf(channel, 'first'), { voucher, deposit, units: null, wanted }, move);
  }

  /** What is presented in place of the voucher that a client would sign. */
  function changed(channel: HeldChannel, device: Device, change: ChannelChange, wanted: Wanted): Shown | null {
    const max = device.charged + wanted.route.price;
    const signed = (ceiling: bigint, by: ClientChannel = channel): Shown => ({
      voucher: client.voucher(by, 'voucher', ceiling > 0n ? ceiling : 1n),
      deposit: null,
      units: null,
      wanted,
    });
    const resigned = (sign: (signature: Buffer) => Buffer): Shown => {
      const shown = signed(max);
      return { ...shown, voucher: { ...shown.voucher, signature: sign(shown.voucher.signature) } };
    };
    const before = channel.shown.filter(({ voucher }) => voucher.kind !== 'refund');
    switch (change) {
      case 'the last one again':
        return before.at(-1) ?? null;
      case 'the last one for another request': {
        const last = before.at(-1);
        return last ? { ...last, wanted } : null;
      }
      case 'an old one':
        return before.length > 0 ? random.pick(before) : null;
      case 'a higher ceiling':
        return signed(max + BigInt(random.pick([1, 500, 1_000_000])));
      case 'a lower ceiling':
        return signed(max - BigInt(random.pick([1, 500])));
      case 'the twin of the signature':
        return resigned(twinOf);
      case 'v of 0 or 1':
        return resigned((signature) => Buffer.from([...signature.subarray(0, 64), (signature[64] ?? 27) - 27]));
      case 'another key':
        return signed(max, { ...channel, signer: accountOf(random.bytes(32)) });
      case 'another channel': {
        const other = [...held.values()].find(({ id }) => id !== channel.id);
        const shown = signed(max);
        return other ? { ...shown, voucher: { ...shown.voucher, config: other.config } } : null;
      }
      default:
        return signed(max);
    }
  }

  async function voucher(move: MoveOf<'voucher'>, at: string): Promise<void> {
    const channel = held.get(move.of);
    if (!channel) return;
    const device = deviceOf(channel, move.device);
    const wanted = wantedOf(move.route);
    const shown = changed(channel, device, move.change, wanted);
    if (!shown) return;
    const way = { ...move, at };
    const learned = await presentAndLearn(channel, device, shown, way);
    // As the stock client does: it signs once more, for the same call.
    if (learned !== 'corrected' || !move.retries) return;
    const again = changed(channel, device, 'nothing', shown.wanted);
    if (again) await presentAndLearn(channel, device, again, way);
  }

  function topUp(move: MoveOf<'top up'>): void {
    const channel = held.get(move.of);
    if (!channel) return;
    const device = deviceOf(channel, move.device);
    const last = channel.shown.findLast(({ deposit }) => deposit !== null);
    const wanted = wantedOf(move.route);
    if (move.change !== 'nothing') {
      if (!last) return;
      const shown = move.change === 'the last one again' ? last : { ...last, wanted };
      return void presentAndLearn(channel, device, shown, move);
    }
    const voucher = client.voucher(channel, 'deposit', device.charged + wanted.route.price);
    const deposit = client.deposit(channel, BigInt(move.units), move.validFor);
    void presentAndLearn(channel, device, { voucher, deposit, units: null, wanted }, move);
  }

  /** A refund is asked for with the last voucher. A captured request is what anybody can send who has seen it. */
  function refund(move: MoveOf<'refund'>): void {
    const channel = held.get(move.of);
    if (!channel) return;
    const captured = channel.shown.findLast(({ voucher: { kind } }) => kind === 'refund');
    const device = deviceOf(channel, 'first');
    const fresh: Shown = {
      voucher: client.voucher(channel, 'refund', device.charged),
      deposit: null,
      units: move.units === null ? null : BigInt(move.units),
      wanted: wantedOf('/sim/cheap'),
    };
    const shown = move.change === 'the last one again' ? (captured ?? fresh) : fresh;
    for (let time = 0; time < move.times; time++) void presentAndLearn(channel, device, shown, move);
  }

  return {
    held,
    open,
    voucher,
    topUp,
    refund,
    /** The deposit that was presented last for a channel. */
    lastDeposit: ({ shown }: HeldChannel): SignedDeposit | null =>
      shown.findLast(({ deposit }) => deposit !== null)?.deposit ?? null,
    /** Whose deposit an authorization of the token is, by its nonce. */
    byNonce(nonce: string): { channel: HeldChannel; deposit: SignedDeposit } | null {
      for (const channel of held.values())
        for (const { deposit } of channel.shown)
          if (deposit && depositTerms(channel.channelId, channel.config, deposit).nonce === nonce)
            return { channel, deposit };
      return null;
    },
  };
}

interface Identified {
  readonly identifier: string | null;
}

export type ChannelPayers = ReturnType<typeof createChannelPayers>;
