import { afterEach, expect, test } from 'vitest';
import { createChainClient } from '../../../../../src/chain/rpc/client.ts';
import { createGasWatch, type GasReading } from '../../../../../src/payment/settlers/relayer/gas-watch.ts';
import { startRpcServer } from '../../../../support/chain/rpc-server.ts';

const RELAYER = `0x${'aa'.repeat(20)}` as const;
const GWEI = 10n ** 9n;
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function watching(balance: () => unknown) {
  const server = await startRpcServer({ eth_getBalance: balance, eth_gasPrice: () => '0x4a817c800' });
  const chain = createChainClient({ rpcUrls: [server.url], chainId: 5042, timeoutMs: 30_000 });
  closing.push(
    () => chain.close(),
    () => server.stop(),
  );
  const readings: GasReading[] = [];
  return { ...createGasWatch(chain, RELAYER, (reading) => void readings.push(reading)), readings, server };
}
const hex = (wei: bigint) => `0x${wei.toString(16)}`;
/** Ten settlements of 300,000 gas at twice 20 gwei. */
const NEEDED = 10n * 300_000n * 40n * GWEI;

test('sales stop when ten settlements are not affordable, beside what is owed already', async () => {
  let balance = NEEDED;
  const { refresh, shortage } = await watching(() => hex(balance));
  expect(shortage()).toBeNull();
  await refresh();
  expect([shortage(), shortage(1n)]).toEqual([null, 'the relayer is short of gas']);
  balance--;
  await refresh();
  expect(shortage()).toBe('the relayer is short of gas');
});

test('the balance, the least balance and the address go to the metrics, and the public detail has none of them', async () => {
  const { refresh, detail, readings } = await watching(() => hex(10n ** 18n));
  expect(detail()).toBeNull();
  await refresh();
  expect(detail()).toBe('gas for 10 settlements is kept in reserve');
  const reading = { balanceWei: 10n ** 18n, gasPriceWei: 20n * GWEI, neededWei: NEEDED, relayer: RELAYER };
  expect(readings).toEqual([reading]);
});

test('a chain that does not answer is an upstream failure, and the last reading stays', async () => {
  let balance: unknown = hex(1n);
  const { refresh, shortage, readings } = await watching(() => balance);
  await refresh();
  balance = 'plenty';
  await expect(refresh()).rejects.toMatchObject({ code: 'upstream_failed' });
  expect([shortage(), readings.length]).toEqual(['the relayer is short of gas', 1]);
});

test('the watch reads the relayer’s own present balance and the nodes’ present price of gas', async () => {
  const { refresh, server } = await watching(() => hex(10n ** 18n));
  await refresh();
  const asked = server.bodies.flat() as { method: string; params: unknown[] }[];
  const paramsOf = (name: string) => asked.find(({ method }) => method === name)?.params;
  expect([paramsOf('eth_getBalance'), paramsOf('eth_gasPrice')]).toEqual([[RELAYER, 'latest'], []]);
});
