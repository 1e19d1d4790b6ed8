import { CLIENTS, runAs } from '../engine/owner.ts';
import type { Random } from '../engine/random.ts';
import type { Presentation, Rail, Reported, Requirement } from '../record/presentation.ts';
import { depositTerms } from '../world/chain/channel-terms.ts';
import { toHex } from '../world/chain/keys.ts';
import { HONEST_NAMES, type Payer, signTerms } from '../world/payers.ts';
import type { World } from '../world/world.ts';
import { type ClientChannel, createChannelClient, type Device } from './channel-client.ts';
import type { Desk, Wanted, Way } from './desk.ts';

/** One call that an honest buyer wanted. */
export interface Purchase {
  readonly atMs: number;
  readonly rail: Rail;
  readonly path: string;
  /** How often he presented or asked; three at the most. */
  tries: number;
  served: boolean;
  ended: boolean;
  /** The last answer that the buyer got. */
  last: string;
}

const TRIES = 3;
/** What an honest payer puts into a channel, in base units. */
const DEPOSIT_UNITS = 100_000n;
const sleep = (ms: number) => new Promise<void>((next) => void setTimeout(next, ms));

/** A payment that he holds: presented until it is served, or refused for good. */
interface Held {
  present(): Promise<Presentation>;
}

/** Buyers with a plain client: they pay what a 402 asks, present again after `Retry-After` on every answer but 200 and 402, and sign anew on 402 alone. */
export function createHonestBuyers(world: World, desk: Desk, random: Random) {
  const { scenario, scheduler, payers, chain, gateway, lightning, catalogue } = world;
  const purchases: Purchase[] = [];
  const client = createChannelClient(world, random);
  const channels = new Map<string, { channel: ClientChannel; device: Device }>();
  const places = world.instances.filter(({ name }) => name !== 'twin').map(({ name }) => name);
  let stopped = false;
  let number = 0;

  function rails(): Rail[] {
    const offered: Rail[] = ['usdc'];
    if (scenario.gateway) offered.push('gateway');
    if (scenario.lightning !== 'off') offered.push('lightning');
    if (scenario.channels) offered.push('channels', 'channels');
    return offered;
  }

  /** Asks without a payment and pays what is asked for; null when the answer was no offer. */
  async function pay(payer: Payer, wanted: Wanted, rail: Rail, way: Way): Promise<Held | Reported | null> {
    const reported = await desk.ask(wanted, way, rail);
    const accepted = reported?.offer?.accepts().find((one) => fits(one, rail));
    if (!accepted) return reported;
    if (rail === 'lightning') return payInvoice(wanted, accepted, payer, way);
    return rail === 'channels' ? fromChannel(payer, wanted, way) : sign(payer, wanted, rail, accepted, way);
  }

  function sign(payer: Payer, wanted: Wanted, rail: 'usdc' | 'gateway', accepted: Requirement, way: Way): Held {
    const now = BigInt(Math.floor(scheduler.nowMs() / 1000));
    const terms = {
      from: payer.address,
      to: accepted.payTo as `0x${string}`,
      value: BigInt(accepted.amount),
      validAfter: now - 600n,
      validBefore: now + BigInt(accepted.maxTimeoutSeconds),
      nonce: toHex(random.bytes(32)),
    };
    const signature = signTerms(payer, rail === 'gateway' ? gateway.domain : chain.token.domain, terms);
    const payment = {
      ...wanted,
      by: payer.name,
      authorization: { rail, terms, signature },
      accepted,
      identifier: null,
    };
    return { present: () => desk.present(payment, way) };
  }

  /** By the payer's own channel, with a deposit where it does not cover the call. What an answer tells of the channel counts for the next voucher. */
  function fromChannel(payer: Payer, wanted: Wanted, way: Way): Held {
    const known = channels.get(payer.name);
    const { channel, device } = known ?? {
      channel: client.channelFor(payer, payer.address),
      device: { charged: 0n, balance: 0n },
    };
    channels.set(payer.name, { channel, device });
    const max = device.charged + wanted.route.price;
    const deposit = max > device.balance ? client.deposit(channel, DEPOSIT_UNITS, 600) : null;
    const voucher = client.voucher(channel, deposit ? 'deposit' : 'voucher', max);
    const authorization = deposit && {
      rail: 'channels' as const,
      signature: deposit.signature,
      terms: depositTerms(channel.channelId, channel.config, deposit),
    };
    const order = { ...wanted, by: payer.name, voucher, deposit, units: null, authorization, identifier: null };
    return {
      present: async () => {
        const presentation = await desk.presentChannel(order, way);
        const { received, reported } = presentation;
        if (received && 'status' in received && reported) client.learn(device, reported);
        return presentation;
      },
    };
  }

  async function payInvoice(wanted: Wanted, accepted: Requirement, payer: Payer, way: Way): Promise<Held | null> {
    const found = lightning.invoices().find(({ text }) => text === accepted.extra.invoice);
    await sleep(random.between(50, 900));
    const preimage = found && lightning.pay(found.paymentHash);
    if (!found || !preimage) return null;
    const proof = { ...wanted, by: payer.name, accepted, preimage, paymentHash: found.paymentHash };
    return { present: () => desk.presentProof(proof, way) };
  }

  async function buy(payer: Payer, from: string): Promise<void> {
    const route = random.pick(catalogue.routes.filter(({ fails, path }) => !fails && path !== '/sim/slow'));
    const rail = random.pick(rails().filter((one) => one !== 'lightning' || route.onLightning));
    const purchase: Purchase = {
      atMs: scheduler.nowMs(),
      rail,
      path: route.path,
      tries: 0,
      served: false,
      ended: false,
      last: '',
    };
    purchases.push(purchase);
    const wanted = { route, tag: `h${number++}` };
    let held: Held | null = null;
    while (purchase.tries < TRIES && !purchase.served && !stopped) {
      purchase.tries += 1;
      const way = { from, at: random.pick(places) };
      let reported: Reported | null = null;
      if (!held) {
        const paid: Held | Reported | null = await pay(payer, wanted, rail, way);
        if (paid && 'present' in paid) held = paid;
        else reported = paid;
      }
      if (held) {
        const presentation = await held.present();
        reported = presentation.received && 'status' in presentation.received ? presentation.reported : null;
      }
      purchase.last = reported ? `${reported.status} ${reported.code}` : 'no answer';
      purchase.served = held !== null && reported?.status === 200;
      if (reported?.status === 402) held = null;
      else if (!purchase.served) await sleep(1000 * Math.max(1, reported?.retryAfterSeconds ?? 1));
    }
    purchase.ended = true;
  }

  async function live(name: string, at: number): Promise<void> {
    const payer = payers.get(name);
    const everyMs = scenario.honestEveryMs * HONEST_NAMES.length;
    await sleep(500 + (at * everyMs) / HONEST_NAMES.length);
    while (!stopped) {
      const began = scheduler.nowMs();
      await buy(payer, `192.0.2.${10 + at}`);
      await sleep(Math.max(1, everyMs - (scheduler.nowMs() - began)));
    }
  }

  return {
    purchases: (): readonly Purchase[] => purchases,
    start: () => {
      if (scenario.honestEveryMs > 0) HONEST_NAMES.forEach((name, at) => void runAs(CLIENTS, () => live(name, at)));
    },
    stop: () => {
      stopped = true;
    },
  };
}

export type HonestBuyers = ReturnType<typeof createHonestBuyers>;

function fits({ scheme, network, extra }: Requirement, rail: Rail): boolean {
  if ((scheme === 'batch-settlement') !== (rail === 'channels')) return false;
  if (network.startsWith('lnbtc:')) return rail === 'lightning';
  if (rail === 'channels') return true;
  return (extra.name === 'GatewayWalletBatched') === (rail === 'gateway') && rail !== 'lightning';
}
