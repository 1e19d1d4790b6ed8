import { randomUUID } from 'node:crypto';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { signRecoverable } from '../../../src/lib/secp256k1.ts';
import { createChannelReader } from '../../../src/payment/channels/channel.ts';
import { hashClient } from '../../../src/payment/ledger.ts';
import type { ChannelConfig } from '../../../src/store/ports/channel-state.ts';
import type { Channel } from '../../../src/store/ports/channels.ts';
import { NETWORK, voucherSale } from '../ledger/channel-rows.ts';
import { adapters } from '../ledger/ledger-adapters.ts';
import { createManualClock } from '../manual-clock.ts';
import { newKey } from '../usdc/payments.ts';
import { channelOf, scheme } from './channel-payment.ts';
import { createContractStandIn } from './contract-stand-in.ts';

export const START_MS = 1_800_000_000_000;
/** The identity of the client that buys over these channels. */
export const BUYER = '10.0.0.1';

/** A payer's channel, and what its payer signs. */
export type UnitChannel = Awaited<ReturnType<Awaited<ReturnType<typeof openChannelLedger>>['open']>>;

/** Channels in a real ledger, on disk unless `adapter` is another, over a stand-in of the contract. Time is the test's. */
export async function openChannelLedger(adapter = adapters[0] as (typeof adapters)[number]) {
  const open = await adapter.open({ synced: false });
  const contract = createContractStandIn();
  const clock = createManualClock(START_MS);
  const store = open.stores.channels;
  const reader = createChannelReader(contract.chain);
  /** What the parts under test logged. */
  const logged: [level: string, message: string, detail: object][] = [];
  const logAs = (level: string) => (detail: object, message: string) => void logged.push([level, message, detail]);

  async function noted(id: Uint8Array): Promise<Channel> {
    const found = await store.get(id);
    if (!found) throw new Error('the channel is not in the ledger');
    return found;
  }

  /** A channel with this balance, of a new payer unless a key is given, unknown to the ledger. */
  function fund(
    balance: bigint,
    more: Partial<ChannelConfig> = {},
    { privateKey } = newKey() as { privateKey: Uint8Array },
  ) {
    const config = channelOf(privateKey, more);
    const id = scheme.channelId(config);
    contract.put(id, { balance });
    return { id, hex: bytesToHex(id), config, privateKey };
  }

  return {
    contract,
    chain: contract.chain,
    clock,
    store,
    reader,
    logged,
    noted,
    stores: open.stores,
    /** Plain SQL beside the stores. */
    sql: open.sql,
    log: { info: logAs('info'), warn: logAs('warn'), error: logAs('error') },
    messages: () => logged.map(([level, message]) => `${level}: ${message}`),
    fund,
    /** A channel with this balance, known to the ledger. */
    async open(balance: bigint) {
      const channel = fund(balance);
      const [state] = await reader.read([channel.id]);
      if (state) await store.note({ ...channel.config, id: channel.id, network: NETWORK }, state, clock.nowMs());
      return channel;
    },
    /** Charges a channel by one voucher up to `max`, which the client BUYER presents. */
    async charge({ id, privateKey }: { id: Uint8Array; privateKey: Uint8Array }, max: bigint): Promise<void> {
      const price = max - (await noted(id)).charged;
      const sale = randomUUID();
      const signature = signRecoverable(scheme.voucherDigest(id, max), privateKey);
      const row = { ...voucherSale(sale, sale, max, { price, amount: price }), reservedAt: clock.nowMs() };
      const clientHash = hashClient(row.nonce, BUYER);
      const isCharged = await store.charge(
        { ...row, clientHash, channel: { channelId: id, max, signature } },
        new Uint8Array(),
        0,
      );
      if (!isCharged) throw new Error('the voucher was not charged');
    },
    close: () => open.close(),
  };
}
