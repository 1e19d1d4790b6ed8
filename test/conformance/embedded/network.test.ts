import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type Abi, decodeFunctionResult, encodeFunctionData, type Hex } from 'viem';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../dev/child.ts';
import { artifacts, send } from '../../../dev/contracts.ts';
import { DISTRIBUTOR } from '../../../dev/dex.ts';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';

interface Block {
  number: Hex;
  timestamp: Hex;
  gasLimit: Hex;
  baseFeePerGas: Hex;
  transactions: { hash: Hex; from: Hex; to: Hex | null; input: Hex; maxFeePerGas: Hex }[];
}

let network: EmbeddedNetwork;
const logged: string[] = [];

beforeAll(async () => {
  network = await startEmbeddedNetwork({ traffic: true, seed: 7, log: (line) => logged.push(line) });
});

afterAll(() => network?.stop());

const height = async () => Number(await network.rpc<Hex>('eth_blockNumber'));
const block = (number: number | 'latest') => {
  const tag = number === 'latest' ? number : `0x${number.toString(16)}`;
  return network.rpc<Block>('eth_getBlockByNumber', [tag, true]);
};

describe('a network with traffic', () => {
  test('has Arc’s chain id, gas limit and lowest base fee, and no accounts of the node’s own', async () => {
    expect(Number(await network.rpc<Hex>('eth_chainId'))).toBe(5042);
    const latest = await block('latest');
    expect(Number(latest.gasLimit)).toBe(30_000_000);
    expect(BigInt(latest.baseFeePerGas)).toBe(20_000_000_000n);
    const accounts = await network.rpc<Hex[]>('eth_accounts');
    expect(accounts).not.toContain('0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266');
  });

  test('announces in each block the base fee that the next one has, as Arc does', async () => {
    const seen = async (number: number) => {
      const params = [`0x${number.toString(16)}`, false];
      const body = JSON.stringify([{ jsonrpc: '2.0', id: 1, method: 'eth_getBlockByNumber', params }]);
      const reply = await fetch(network.rpcUrl, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json' },
      });
      const [answer] = (await reply.json()) as { result: { extraData: Hex; baseFeePerGas: Hex; number: Hex } }[];
      const { result } = answer!;
      expect(Number(result.number)).toBe(number);
      return result;
    };
    const newest = await height();
    for (let number = 1; number < newest; number++) {
      const [own, next] = [await seen(number), await seen(number + 1)];
      expect(own.extraData).toMatch(/^0x[0-9a-f]{16}$/);
      expect(BigInt(own.extraData)).toBe(BigInt(next.baseFeePerGas));
    }
    expect((await seen(0)).extraData).toBe('0x');
  });

  test('makes two blocks a second, with wall-clock timestamps, of which two may be equal', async () => {
    let { paceMs, stamps } = await watchBlocks();
    // A busy machine makes its blocks late, until it has time again.
    while (paceMs > 800) ({ paceMs, stamps } = await watchBlocks());
    expect(paceMs).toBeGreaterThan(400);
    expect(new Set(stamps).size, 'some blocks share a second').toBeLessThan(stamps.length);
    expect(
      [...stamps].sort((a, b) => a - b),
      'never backwards',
    ).toEqual(stamps);
  });

  test('sends transfers of three kinds, deployments, swaps, burns and payouts, none of which fails or offers too low a fee', async () => {
    const seen = { native: 0, usdc: 0, token: 0, deploy: 0, swap: 0, burn: 0, payout: 0 };
    // The first blocks prepare the pools.
    const first = 6;
    const deadline = Date.now() + 120_000;
    for (let next = first; Date.now() < deadline && Math.min(...Object.values(seen)) === 0; ) {
      if (next > (await height())) {
        await delay(100);
        continue;
      }
      for (const tx of (await block(next)).transactions) {
        seen[kindOf(tx)] += 1;
        expect(BigInt(tx.maxFeePerGas)).toBe(100_000_000_000n);
        const receipt = await network.rpc<{ status: Hex }>('eth_getTransactionReceipt', [tx.hash]);
        expect(receipt.status).toBe('0x1');
      }
      next += 1;
    }
    expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).toBeGreaterThan(0);
    expect(logged).toEqual([]);
  });
});

/** The timestamps of the next twelve blocks, in seconds, and the milliseconds from one to the next. */
async function watchBlocks(): Promise<{ paceMs: number; stamps: number[] }> {
  // Before the height is read, so that a pause between the two shortens no time.
  const began = performance.now();
  const first = await height();
  const stamps: number[] = [];
  let seen = first;
  while (seen < first + 12) {
    // More than one after a pause.
    for (const newest = await height(); seen < newest; ) {
      seen += 1;
      const stamp = Number((await block(seen)).timestamp);
      stamps.push(stamp);
      // Never ahead of the wall clock.
      expect(stamp - Date.now() / 1000).toBeLessThan(1);
    }
    await delay(20);
  }
  return { paceMs: (performance.now() - began) / (seen - first), stamps };
}

function kindOf({ from, to, input }: Block['transactions'][number]) {
  if (to === null) return 'deploy';
  if (to === network.pools!.trader) return 'swap';
  if (input === '0x') return 'native';
  if (to === network.usdc) return from === DISTRIBUTOR ? 'payout' : 'usdc';
  return to === network.projectToken && input.slice(34, 74).endsWith('dead') ? 'burn' : 'token';
}

describe('in the embedded network', () => {
  const multicall = artifacts.Multicall3.abi as Abi;
  const balanceOf = (account: Hex) =>
    encodeFunctionData({ abi: artifacts.Usdc.abi, functionName: 'balanceOf', args: [account] });

  async function aggregate3(calls: { target: Hex; allowFailure: boolean; callData: Hex }[]) {
    const data = encodeFunctionData({ abi: multicall, functionName: 'aggregate3', args: [calls] });
    const answer = await network.rpc<Hex>('eth_call', [{ to: network.multicall3, data }, 'latest']);
    const result = decodeFunctionResult({ abi: multicall, functionName: 'aggregate3', data: answer });
    return result as { success: boolean; returnData: Hex }[];
  }

  test('Multicall3 returns each call’s result, and fails as a whole when a failure is not allowed', async () => {
    const unknown: Hex = '0xdeadbeef';
    const [balance, failed] = await aggregate3([
      { target: network.usdc, allowFailure: false, callData: balanceOf(network.buyer.address) },
      { target: network.usdc, allowFailure: true, callData: unknown },
    ]);
    expect(balance).toMatchObject({ success: true });
    expect(BigInt(balance!.returnData)).toBe(10_000_000n);
    expect(failed).toEqual({ success: false, returnData: '0x' });
    const strict = [{ target: network.usdc, allowFailure: false, callData: unknown }];
    await expect(aggregate3(strict)).rejects.toThrow('Multicall3: call failed');
  });

  test('funding adds to an account’s balance in both interfaces of USDC', async () => {
    const { address } = createAccount();
    await Promise.all([network.fundUsdc(address, 5n), network.fundUsdc(address, 6n)]);
    const data = balanceOf(address);
    expect(BigInt(await network.rpc<Hex>('eth_call', [{ to: network.usdc, data }, 'latest']))).toBe(11n);
    await Promise.all([network.fundNative(address, 1n), network.fundNative(address, 2n)]);
    expect(BigInt(await network.rpc<Hex>('eth_getBalance', [address, 'latest']))).toBe(3n);
    expect(BigInt(await network.rpc<Hex>('eth_getBalance', [network.buyer.address, 'latest']))).toBe(0n);
  });
});

describe('a network without traffic', () => {
  let plain: EmbeddedNetwork;
  beforeAll(async () => {
    plain = await startEmbeddedNetwork();
  });
  afterAll(() => plain?.stop());

  test('a transaction is mined although the node expected a lower fee when it was sent', async () => {
    await plain.pauseMining();
    onTestFinished(() => plain.resumeMining());
    // Mined without the miner. From here until Arc's fee is set, the node expects EIP-1559's fee, which falls by an eighth per block.
    await plain.rpc('evm_mine');
    await plain.rpc('evm_mine');
    await plain.rpc('anvil_impersonateAccount', [plain.relayer.address]);
    const hash = await send(plain.rpc, { from: plain.relayer.address, to: plain.seller, value: '0x1' });
    await plain.rpc('anvil_setNextBlockBaseFeePerGas', ['0x4a817c800']);
    await plain.mine();
    expect(await plain.rpc('eth_getTransactionReceipt', [hash])).toMatchObject({ status: '0x1' });
  });

  test('only requested blocks are mined while mining is paused, and blocks are mined regularly again afterwards', async () => {
    await plain.pauseMining();
    onTestFinished(() => plain.resumeMining());
    const height = async () => Number(await plain.rpc<Hex>('eth_blockNumber'));
    const before = await height();
    await delay(1200);
    expect(await height()).toBe(before);
    await plain.mine(3);
    expect(await height()).toBe(before + 3);
    const token = await plain.deploy('Token', ['Coin', 'COIN', 6]);
    expect(await plain.rpc<Hex>('eth_getCode', [token, 'latest'])).toBe(artifacts.Token.runtime);
    await plain.resumeMining();
    await expect.poll(height).toBeGreaterThanOrEqual(before + 5);
  });

  test('EURC and the project token have their names, and pools exist only when asked for', async () => {
    expect(plain.pools).toBeNull();
    const read = async (to: Hex, functionName: string) => {
      const data = encodeFunctionData({ abi: artifacts.Token.abi, functionName });
      const answer = await plain.rpc<Hex>('eth_call', [{ to, data }, 'latest']);
      return decodeFunctionResult({ abi: artifacts.Token.abi, functionName, data: answer });
    };
    for (const [token, symbol, decimals] of [
      [plain.eurc, 'EURC', 6],
      [plain.projectToken, 'CALL', 18],
    ] as const) {
      expect([await read(token, 'symbol'), await read(token, 'decimals')]).toEqual([symbol, decimals]);
    }
    // As in Arc's own pool of EURC and USDC: the same tokens, fee and tick spacing.
    expect(network.pools?.v4PoolId).toBe('0xeb0fd02fb8044d5514fb6e165ee134fd547eff0378bb33b76f4b81d8b03bd1ae');
  });
});

test('a free port is one that no process uses', async () => {
  const taken = Number(new URL(network.rpcUrl).port);
  await expect(freePort(taken)).rejects.toThrow(`port ${taken} cannot be served on`);
  const port = await freePort();
  expect(port).toBeGreaterThan(0);
  expect(await freePort(port)).toBe(port);
});

test('a port in use is reported with the node’s own message', async () => {
  const port = Number(new URL(network.rpcUrl).port);
  await expect(startEmbeddedNetwork({ port })).rejects.toThrow(/did not start.*address.*in use/is);
});

test('the stop of the embedded network leaves no process and no directory behind, and may be called twice', async () => {
  const short = await startEmbeddedNetwork({ traffic: true });
  expect(process.kill(short.pid, 0)).toBe(true);
  await Promise.all([short.stop(), short.stop()]);
  expect(() => process.kill(short.pid, 0)).toThrow('ESRCH');
  expect(existsSync(short.dataDir)).toBe(false);
});
