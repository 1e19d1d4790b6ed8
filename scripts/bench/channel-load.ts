import { setTimeout as delay } from 'node:timers/promises';
import { createAccount, type EmbeddedNetwork } from '../../dev/network.ts';
import { hexToBytes } from '../../src/lib/hex.ts';
import { channelBuyer, channelEntry } from '../../test/support/channels/channel-buyer.ts';
import type { Requirement } from '../../test/support/usdc/payments.ts';
import { openClients } from './claims.ts';
import { percentile } from './lib.ts';
import { getOf, openRawClient } from './raw-client.ts';

/** 100 USDC: more than all calls of a buyer cost. */
const DEPOSIT = 100_000_000n;
/** What every answer that is sold here contains. A refusal does not. */
const SOLD = '"costUsdc"';

/** A buyer with a channel, and signed vouchers that it has not sent yet. */
interface Buyer {
  readonly ready: Buffer[];
  /** Signs until `count` requests are ready. */
  sign(count: number): void;
}

/** The result of one round. Times in milliseconds. */
export interface ChannelMeasure {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly calls: number;
}

/** Waits until the URL offers channels, and returns their entry in its challenge. */
export async function readChannelEntry(url: string): Promise<Requirement> {
  for (let tries = 0; ; tries++) {
    const answer = await fetch(url);
    try {
      return channelEntry(String(answer.headers.get('payment-required')));
    } catch (error) {
      if (tries === 100) throw error;
      await delay(100);
    }
  }
}

/** Opens a channel for each of `count` buyers, by the deposit that pays for its first call. `atOnce`: the SDK's server refuses some of several deposits at once. */
export async function openBuyers(
  network: EmbeddedNetwork,
  url: string,
  count: number,
  atOnce = count,
): Promise<Buyer[]> {
  const entry = await readChannelEntry(url);
  const buyers: Buyer[] = [];
  while (buyers.length < count) {
    const group = Math.min(atOnce, count - buyers.length);
    buyers.push(...(await Promise.all(Array.from({ length: group }, () => openBuyer(network, new URL(url), entry)))));
  }
  return buyers;
}

async function openBuyer(network: EmbeddedNetwork, url: URL, entry: Requirement): Promise<Buyer> {
  const price = BigInt(entry.amount);
  const channel = channelBuyer(hexToBytes(createAccount().privateKey), entry);
  await network.fundUsdc(channel.address, DEPOSIT);
  const connection = await openRawClient(url.origin);
  const request = (payment: string) => getOf(url.origin, url.pathname, { 'payment-signature': payment });
  checkSold(await connection.send(request(channel.deposit(DEPOSIT, price))));
  connection.close();
  const ready: Buffer[] = [];
  let signed = price;
  return {
    ready,
    sign: (total) => {
      while (ready.length < total) {
        signed += price;
        ready.push(request(channel.voucher(signed)));
      }
    },
  };
}

/** Runs one round. Each buyer sends its next voucher as soon as its last call was answered. Vouchers are signed before the round starts. */
export async function measureChannels(
  origin: string,
  buyers: readonly Buyer[],
  seconds: number,
  most: number,
): Promise<ChannelMeasure> {
  for (const buyer of buyers) buyer.sign(most);
  // New ones: an idle connection is closed by the server, and signing takes seconds.
  const connections = await openClients(origin, buyers.length);
  const times: number[] = [];
  const from = performance.now();
  await Promise.all(
    connections.map(async ({ send }, at) => {
      const { ready } = buyers[at] as Buyer;
      while (performance.now() - from < seconds * 1000) {
        const bytes = ready.shift();
        if (!bytes) throw new Error(`a buyer has used its ${most} vouchers before the round's end`);
        const sent = performance.now();
        checkSold(await send(bytes));
        times.push(performance.now() - sent);
      }
    }),
  );
  const took = performance.now() - from;
  for (const { close } of connections) close();
  return {
    perSecond: (times.length * 1000) / took,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    calls: times.length,
  };
}

function checkSold(body: string): void {
  if (!body.includes(SOLD)) throw new Error(`not sold: ${body}`);
}
