import { afterEach, describe, expect, test } from 'vitest';
import { createGasWatch, type GasReading } from '../../../../../src/payment/relayer/gas.ts';
import { openClient } from '../../../../support/chain/client.ts';
import { startRpcServer } from '../../../../support/chain/rpc-server.ts';
import { quiet } from '../../../../support/quiet.ts';

const RELAYER = `0x${'aa'.repeat(20)}` as const;
const GWEI = 10n ** 9n;
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function watching(balance: () => unknown) {
  const server = await startRpcServer({ eth_getBalance: balance, eth_gasPrice: () => '0x4a817c800' });
  const chain = openClient({ rpcUrls: [server.url], chainId: 5042, timeoutMs: 30_000 });
  closing.push(
    () => chain.close(),
    () => server.stop(),
  );
  const readings: GasReading[] = [];
  const lines: object[] = [];
  const onReading = (reading: GasReading) => void readings.push(reading);
  const watch = createGasWatch(linesTo(lines), chain, RELAYER, onReading);
  return { ...watch, readings, lines, server };
}
/** A log whose lines are kept with their level. */
const linesTo = (lines: object[]) => ({
  ...quiet,
  info: (detail: object, msg: string) => void lines.push({ level: 'info', ...detail, msg }),
  warn: (detail: object, msg: string) => void lines.push({ level: 'warn', ...detail, msg }),
});
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

test('the log names the address, the balance and what is needed when gas runs short, at once, and when it suffices again', async () => {
  let balance = NEEDED - 1n;
  const { refresh, lines } = await watching(() => hex(balance));
  const short = {
    level: 'warn',
    relayer: RELAYER,
    balanceUsdc: '0.119999999999999999',
    neededUsdc: '0.12',
    msg: 'the relayer is short of gas, and sales stop: send USDC to its address',
  };
  await refresh();
  await refresh();
  expect(lines).toEqual([short]);
  balance = 2n * NEEDED;
  await refresh();
  await refresh();
  const enough = { level: 'info', balanceUsdc: '0.24', msg: 'the relayer has enough gas again' };
  expect(lines).toEqual([short, { ...short, ...enough }]);
  // What settles is owed twice over.
  await refresh(NEEDED);
  expect(lines.slice(2)).toEqual([{ ...short, balanceUsdc: '0.24', neededUsdc: '0.36' }]);
});

test('a relayer with enough gas from the start is no news', async () => {
  const { refresh, lines } = await watching(() => hex(NEEDED));
  await refresh();
  expect(lines).toEqual([]);
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

describe('over several providers', () => {
  const [rich, poor] = [hex(10n ** 18n), hex(1n)];

  /** Opens a provider for each of these, in the order in which they are asked: its balance and its price of gas. */
  async function over(...says: readonly (readonly [balance: string, price?: string])[]) {
    const servers = await Promise.all(
      says.map(([balance, price = hex(20n * GWEI)]) =>
        startRpcServer({ eth_getBalance: () => balance, eth_gasPrice: () => price }),
      ),
    );
    const chain = openClient({ rpcUrls: servers.map(({ url }) => url), chainId: 5042, timeoutMs: 30_000 });
    closing.push(() => chain.close(), ...servers.map((server) => () => server.stop()));
    return {
      ...createGasWatch(quiet, chain, RELAYER),
      asked: () => servers.map((server) => server.count('eth_gasPrice')),
    };
  }

  test.each<[string, (readonly [string, string?])[], string | null]>([
    ['a balance that one alone says is too low stops nothing', [[poor], [rich]], null],
    ['a price that one alone says is too high stops nothing', [[rich, hex(10n ** 18n)], [rich]], null],
    ['what one of three says stops nothing', [[poor], [rich], [rich]], null],
    ['what two of three say stops sales', [[poor], [rich], [poor]], 'the relayer is short of gas'],
    ['what both say stops sales', [[poor], [poor]], 'the relayer is short of gas'],
    ['another one that says nothing readable saves nothing', [[poor], ['plenty']], 'the relayer is short of gas'],
  ])('%s', async (_, says, shortage) => {
    const watch = await over(...says);
    await watch.refresh();
    expect(watch.shortage()).toBe(shortage);
  });

  test('enough at the first one costs one request; too little beside what is owed is asked for again', async () => {
    const watch = await over([hex(NEEDED)], [rich]);
    await watch.refresh();
    expect([watch.asked(), watch.shortage(), watch.shortage(1n)]).toEqual([
      [1, 0],
      null,
      'the relayer is short of gas',
    ]);
    await watch.refresh(1n);
    expect([watch.asked(), watch.shortage(1n)]).toEqual([[3, 1], null]);
  });
});
