import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../../dev/child.ts';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { hexToBytes } from '../../src/lib/hex.ts';
import { channelBuyer } from '../../test/support/channels/channel-buyer.ts';
import { channelOnChain } from '../../test/support/channels/channel-reads.ts';
import type { Requirement } from '../../test/support/usdc/payments.ts';
import { readChannelEntry } from './channel-load.ts';
import { startService } from './lib.ts';
import { getOf, openRawClient } from './raw-client.ts';

const PATH = '/v1/paid/fees/estimate';
const LEDGER = join(import.meta.dirname, '../ledger.ts');
const [CHANNELS, CALLS] = [100, 100];
/** Base units: 0.2 USDC, of which the calls take a quarter. The service refunds 0.1 USDC and more. */
const DEPOSIT = 200_000n;
/** The least gas price of Arc, in gwei, and the goal for a call, in USDC. */
const [GWEI, GOAL_USDC] = [20, 0.0001];
const MOST_WAIT_MS = 120_000;

interface Channel {
  /** Makes the calls that follow the deposit's, one after the other. */
  callAll(origin: string): Promise<void>;
  /** Asks for the rest, and waits until the contract has paid it. */
  refund(origin: string): Promise<void>;
}

/**
 * Measures the gas that calls from channels cost the seller, by the receipts of all transactions that the relayer sent:
 * 1. Buyers open their channels one after the other, so that no two deposits share a transaction. That is the dearest way.
 * 2. Each makes CALLS calls in all.
 * 3. The command claims everything: one claim and one sweep for all channels.
 * 4. Each buyer takes the rest back.
 */
export async function benchChannelGas(): Promise<void> {
  const network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  const env = envOf(network, await freePort());
  const [port, origin] = [Number(env.PORT), env.PUBLIC_ORIGIN ?? ''];
  let server = await startService(port, '/readyz', env);
  try {
    const entry = await readChannelEntry(origin + PATH);
    const channels: Channel[] = [];
    while (channels.length < CHANNELS) channels.push(await openChannel(network, origin, entry));
    const deposits = await gasOfRelayer(network);
    await Promise.all(channels.map(({ callAll }) => callAll(origin)));
    await server.stop();
    await promisify(execFile)(process.execPath, [LEDGER, 'claim'], { env: { PATH: process.env.PATH, ...env } });
    const claims = (await gasOfRelayer(network)).slice(deposits.length);
    server = await startService(port, '/readyz', env);
    await readChannelEntry(origin + PATH);
    await Promise.all(channels.map(({ refund }) => refund(origin)));
    report(deposits, claims, (await gasOfRelayer(network)).slice(deposits.length + claims.length));
  } finally {
    await server.stop();
    await network.stop();
  }
}

function envOf(network: EmbeddedNetwork, port: number): Record<string, string> {
  return {
    ...embeddedEnvironment(network, { channels: true }),
    RELAYER_DAILY_GAS_USDC: 'off',
    PORT: String(port),
    PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
    LOG_LEVEL: 'error',
    COLLECTOR: 'off',
    CHANNELS_MIN_DEPOSIT_USDC: '0.2',
    RECEIPT_POLL_MS: '50',
    REPLY_STORE_MB: '1024',
  };
}

async function openChannel(network: EmbeddedNetwork, origin: string, entry: Requirement): Promise<Channel> {
  const price = BigInt(entry.amount);
  const channel = channelBuyer(hexToBytes(createAccount().privateKey), entry);
  await network.fundUsdc(channel.address, DEPOSIT);
  const ask = (client: Awaited<ReturnType<typeof openRawClient>>, payment: string) =>
    client.send(getOf(origin, PATH, { 'payment-signature': payment }));
  const connected = async (work: (client: Awaited<ReturnType<typeof openRawClient>>) => Promise<void>) => {
    const client = await openRawClient(origin);
    await work(client);
    client.close();
  };
  const sold = (body: string): void => {
    if (!body.includes('"costUsdc"')) throw new Error(`not sold: ${body}`);
  };

  await connected(async (client) => sold(await ask(client, channel.deposit(DEPOSIT, price))));
  return {
    callAll: () =>
      connected(async (client) => {
        for (let call = 2; call <= CALLS; call++) sold(await ask(client, channel.voucher(price * BigInt(call))));
      }),
    refund: () =>
      connected(async (client) => {
        // Not awaited: the answer comes late when many wait for the relayer. The contract shows the refund.
        void ask(client, channel.refund(price * BigInt(CALLS))).catch(() => {});
        for (const untilMs = Date.now() + MOST_WAIT_MS; Date.now() < untilMs; await delay(100)) {
          const { balance, claimed } = await channelOnChain(network, channel.id);
          if (balance === claimed) return;
        }
        throw new Error('a channel was not refunded');
      }),
  };
}

/** The gas of every mined transaction of the relayer, in their order. */
async function gasOfRelayer({ rpc, relayer }: EmbeddedNetwork): Promise<number[]> {
  const head = Number(await rpc<string>('eth_blockNumber'));
  const gas: number[] = [];
  for (let number = 0; number <= head; number++) {
    const receipts = await rpc<{ from: string; gasUsed: string }[]>('eth_getBlockReceipts', [
      `0x${number.toString(16)}`,
    ]);
    const ours = receipts.filter(({ from }) => from === relayer.address.toLowerCase());
    gas.push(...ours.map(({ gasUsed }) => Number(gasUsed)));
  }
  return gas;
}

function report(deposits: readonly number[], claims: readonly number[], refunds: readonly number[]): void {
  const sum = (gas: readonly number[]) => gas.reduce((all, one) => all + one, 0);
  const line = (name: string, gas: readonly number[]): void =>
    console.log(
      `${name.padEnd(16)} ${String(gas.length).padStart(4)} transactions, ${(sum(gas) / CHANNELS).toFixed(0).padStart(7)} gas a channel`,
    );
  const cost = (name: string, gas: number): void => {
    const each = gas / (CHANNELS * CALLS);
    console.log(`${name}: ${each.toFixed(0)} gas a call, ${((each * GWEI) / 1e9).toFixed(6)} USDC at ${GWEI} gwei`);
  };
  console.log(`${CHANNELS} channels, ${CALLS} calls each`);
  line('deposits', deposits);
  line('claim and sweep', claims);
  line('refunds', refunds);
  cost(`deposit, claim and sweep (goal ${GOAL_USDC} USDC)`, sum(deposits) + sum(claims));
  cost('with a refund of each channel', sum(deposits) + sum(claims) + sum(refunds));
  if (((sum(deposits) + sum(claims)) / (CHANNELS * CALLS)) * GWEI > GOAL_USDC * 1e9) throw new Error('above the goal');
}
