import { decodeFunctionData, type Hex } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { artifacts } from '../../../../../dev/contracts.ts';
import { RpcError } from '../../../../../src/chain/rpc/wire.ts';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import { recoverAddress } from '../../../../../src/lib/secp256k1.ts';
import { type Due, sortOut } from '../../../../../src/payment/channels/claims.ts';
import { openChannelLedger, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';
import { CHANNEL_TERMS, scheme } from '../../../../support/channels/channel-payment.ts';
import { newKey } from '../../../../support/usdc/payments.ts';

// Which rows are refused and how they are split is in claims.test.ts.

const authorizer = newKey();
const { signal } = new AbortController();
let bed: Awaited<ReturnType<typeof openChannelLedger>>;
beforeEach(async () => {
  bed = await openChannelLedger();
});
afterEach(() => bed.close());

function sort(due: readonly Due[]) {
  const { receiver, token } = CHANNEL_TERMS;
  const options = { chain: bed.chain, scheme, log: bed.log, receiver, token, sender: `0x${'77'.repeat(20)}` as const };
  return sortOut({ ...options, authorizerKey: authorizer.privateKey }, due, signal);
}
async function dueOf({ id, config }: UnitChannel): Promise<Due> {
  const row = { config, maxClaimableAmount: 900n, signature: Buffer.alloc(65, 2), totalClaimed: 900n };
  return { channel: await bed.noted(id), row };
}

describe('a batch of claims', () => {
  test('without a row asks no node', async () => {
    expect(await sort([])).toEqual({ good: null, bad: [] });
    expect(bed.contract.asked).toEqual([]);
  });

  test('is signed by the authorizer over its rows in their order', async () => {
    const [one, two] = [await bed.open(10_000n), await bed.open(10_000n)];
    const due = [await dueOf(two), await dueOf(one)];
    const { good } = await sort(due);
    const abi = artifacts.BatchSettlement.abi as never;
    const decode = (data: Hex) => decodeFunctionData({ abi, data }) as unknown as { args: readonly unknown[] };
    const [[claim]] = decode(bytesToHex(good?.calldata ?? Buffer.alloc(0))).args as [[Hex]];
    const [rows, signature] = decode(claim).args as [{ totalClaimed: bigint }[], Hex];
    expect(rows.map(({ totalClaimed }) => totalClaimed)).toEqual([900n, 900n]);
    const digest = scheme.claimDigest([two, one].map(({ id }) => ({ channelId: id, ...AMOUNTS })));
    const signer = recoverAddress(digest, hexToBytes(signature));
    expect(signer && bytesToHex(signer)).toBe(authorizer.address.toLowerCase());
  });

  test('that no node simulates is not judged: the caller hears why', async () => {
    const due = [await dueOf(await bed.open(10_000n))];
    bed.contract.before = () => {
      throw new RpcError(-32005, 'limit exceeded');
    };
    await expect(sort(due)).rejects.toThrow('limit exceeded');
  });
});

const AMOUNTS = { maxClaimableAmount: 900n, totalClaimed: 900n };
