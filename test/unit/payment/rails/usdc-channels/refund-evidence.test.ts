import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RpcError } from '../../../../../src/chain/rpc/wire.ts';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import { refundCalldata } from '../../../../../src/payment/channels/calldata.ts';
import { createRefundEvidence } from '../../../../../src/payment/channels/refund-sending.ts';
import { SETTLEMENT } from '../../../../../src/payment/channels/scheme.ts';
import { openChannelLedger, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';
import { operation } from '../../../../support/ledger/channel-rows.ts';

const REFUNDED = '0xa84286cf8ebc7903a663c77c8d99aa92b600d4c2fcca872a5d4a663db4eb394b';
const UNREADABLE = { status: 502 };

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
let channel: UnitChannel;
let evidence: ReturnType<typeof createRefundEvidence>;
beforeEach(async () => {
  bed = await openChannelLedger();
  channel = await bed.open(10_000n);
  const { store, reader, chain } = bed;
  evidence = createRefundEvidence({ store, reader, chain });
});
afterEach(() => bed.close());

/** Mines a refund of this amount with the channel's next nonce. */
function refund(amount: bigint, of = channel) {
  const nonce = bed.contract.of(of.id).refundNonce;
  const receipt = bed.contract.mine(refundCalldata(of.config, amount, nonce, Buffer.alloc(65, 1)));
  return { nonce, transaction: hexToBytes(receipt.transactionHash), block: Number(receipt.blockNumber), receipt };
}
const lookUp = (nonce: bigint, transaction: Uint8Array | null = null) =>
  evidence.lookUp({ channelId: channel.id, nonce, transaction });
const MOVED_NOTHING = { kind: 'failed', reason: 'its nonce is used, and nothing went back' };

describe('the end of a refund', () => {
  test('is shown by the noted transaction alone, with one request', async () => {
    const { transaction, block, nonce } = refund(40n);
    bed.contract.asked.length = 0;
    expect(await lookUp(nonce, transaction)).toEqual({ kind: 'done', transaction, block, amount: 40n });
    expect(bed.contract.asked).toMatchObject([{ method: 'eth_getTransactionReceipt', rank: 'settle' }]);
  });

  test('is that nothing went back where the noted transaction went through without the event', async () => {
    bed.contract.put(channel.id, { balance: 0n });
    const { transaction, nonce } = refund(40n);
    expect(await lookUp(nonce, transaction)).toEqual(MOVED_NOTHING);
  });

  test('is open while its nonce is not used, whatever the noted transaction is', async () => {
    const reverted = bed.contract.mineLogs([], '0x0');
    for (const noted of [null, Buffer.alloc(32, 9), hexToBytes(reverted.transactionHash)])
      expect(await lookUp(0n, noted)).toBeNull();
    refund(40n);
    expect(await lookUp(1n)).toBeNull();
  });

  test('is found in the logs of the channel where a third party sent it', async () => {
    const other = await bed.open(10_000n);
    refund(9n, other);
    const first = refund(40n);
    refund(8n, other);
    const second = refund(50n);
    const shown = ({ transaction, block }: typeof first, amount: bigint) => ({
      kind: 'done',
      transaction,
      block,
      amount,
    });
    expect(await lookUp(0n)).toEqual(shown(first, 40n));
    expect(await lookUp(1n)).toEqual(shown(second, 50n));
    bed.contract.asked.length = 0;
    await lookUp(1n, Buffer.alloc(32, 9));
    const logs = bed.contract.asked.find(({ method }) => method === 'eth_getLogs');
    expect(logs).toMatchObject({
      rank: 'settle',
      fromOneProvider: true,
      params: [{ address: SETTLEMENT, topics: [REFUNDED, channel.hex], fromBlock: '0x0' }],
    });
    expect(bed.contract.asked.map(({ rank }) => rank)).toEqual(Array(bed.contract.asked.length).fill('settle'));
  });

  test('is searched in the newest 9,999 blocks', async () => {
    const { block } = refund(40n);
    bed.contract.block = block + 9_998;
    expect(await lookUp(0n)).toMatchObject({ kind: 'done' });
    const { params } = bed.contract.asked.find(({ method }) => method === 'eth_getLogs')!;
    expect(params).toMatchObject([{ fromBlock: `0x${block.toString(16)}` }]);
    bed.contract.block += 1;
    expect(await lookUp(0n)).toEqual(MOVED_NOTHING);
  });

  test('is not the event of an earlier refund that the ledger has ended', async () => {
    const first = refund(40n);
    const calldata = Buffer.from('call');
    await bed.store.begin(operation('first', { kind: 'refund', channelId: channel.id, calldata }), { charged: 0n });
    await bed.store.end('first', { state: 'done', amount: 40n, transaction: first.transaction, endedAt: 1 });
    bed.contract.put(channel.id, { balance: 0n });
    refund(50n);
    expect(await lookUp(1n)).toEqual(MOVED_NOTHING);
    bed.contract.put(channel.id, { balance: 100n });
    const third = refund(60n);
    expect(await lookUp(2n)).toMatchObject({ amount: 60n, transaction: third.transaction });
  });
});

describe('the end of a refund is not decided', () => {
  test('where the provider of the logs has not reached the block of the state', async () => {
    refund(40n);
    const { chain } = bed;
    const behind = createRefundEvidence({
      store: bed.store,
      reader: bed.reader,
      chain: {
        batch: async (...given) => {
          const [, logs] = await chain.batch(...given);
          return [{ result: null }, logs!];
        },
      },
    });
    await expect(behind.lookUp({ channelId: channel.id, nonce: 0n, transaction: null })).rejects.toMatchObject(
      UNREADABLE,
    );
  });

  test.each(['eth_getLogs', 'eth_getBlockByNumber'])('where the node refuses %s', async (refused) => {
    refund(40n);
    bed.contract.before = (method) => {
      if (method === refused) throw new RpcError(-32005, 'too much');
    };
    await expect(lookUp(0n)).rejects.toMatchObject(UNREADABLE);
  });

  test('where the transaction of its event cannot be read', async () => {
    const { receipt } = refund(40n);
    bed.contract.mined.splice(bed.contract.mined.indexOf(receipt), 1);
    await expect(lookUp(0n)).rejects.toMatchObject(UNREADABLE);
    bed.contract.mined.push({ ...receipt, logs: [] });
    await expect(lookUp(0n)).rejects.toMatchObject(UNREADABLE);
  });
});

test('a receipt shows the first refund of this channel, and none of another', async () => {
  const { receipt, block, transaction } = refund(40n);
  const done = { kind: 'done', transaction, block, amount: 40n };
  expect(evidence.refundedIn(receipt, channel.id)).toEqual(done);
  expect(evidence.refundedIn(receipt, Buffer.alloc(32, 1))).toBeNull();
  const event = (id: string, amount: bigint) => bed.contract.event('Refunded', [id, `0x${'5e'.repeat(20)}`], [amount]);
  const claimed = bed.contract.event('Claimed', [channel.hex, `0x${'5e'.repeat(20)}`], [5n, 5n]);
  const made = [claimed, event(bytesToHex(Buffer.alloc(32, 1)), 3n), event(channel.hex, 4n), event(channel.hex, 5n)];
  expect(evidence.refundedIn(bed.contract.mineLogs(made), channel.id)).toMatchObject({ amount: 4n });
});
