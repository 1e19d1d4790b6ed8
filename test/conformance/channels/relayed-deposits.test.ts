import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import type { Intent, Outcome } from '../../../src/payment/settler.ts';
import { type ChainChannel, createChainChannels } from '../../support/channels/chain-channels.ts';
import { createChannelStage } from '../../support/channels/channel-contract.ts';
import { createStillClock } from '../../support/still-clock.ts';
import { openChainRelayer } from '../../support/usdc/chain-relayer.ts';
import { newKey, type Requirement, signAuthorization } from '../../support/usdc/payments.ts';
import { randomIntent } from '../../support/usdc/token-node.ts';

// Deposits into payment channels through our relayer, on a real node with the settlement contract.

const DEPOSIT = 1_000_000n;
const PRICE = 1000n;
let network: EmbeddedNetwork;
let channels: ReturnType<typeof createChainChannels>;
let stage: ReturnType<typeof createChannelStage>;
let bed: Awaited<ReturnType<typeof openChainRelayer>>;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 200 });
  channels = createChainChannels(network);
  stage = createChannelStage(network);
});
beforeEach(async () => {
  // Time stands still for the relayer. It warns of a transaction that is late.
  const clock = createStillClock();
  clock.stop();
  bed = await openChainRelayer(network, clock);
});
afterEach(() => bed.close());
afterAll(() => network?.stop());

const balanceOf = async ({ id }: ChainChannel) => (await stage.read<[bigint, bigint]>('channels', [bytesToHex(id)]))[0];
const settle = (...intents: Intent[]): Promise<Outcome[]> => Promise.all(bed.relayer.settle(intents));
const kinds = (outcomes: readonly Outcome[]) => outcomes.map(({ kind }) => kind);
const channelsOf = (count: number) => Promise.all(Array.from({ length: count }, () => channels.open(2n * DEPOSIT)));

/** The intent of a plain payment. */
async function transfer(): Promise<Intent> {
  const { privateKey, address } = newKey();
  await network.fundUsdc(address, PRICE);
  const terms = {
    amount: String(PRICE),
    payTo: stage.receiver,
    asset: network.usdc,
    network: `eip155:${network.chainId}`,
  };
  const requirement = { ...terms, scheme: 'exact', maxTimeoutSeconds: 604_900, extra: {} } satisfies Requirement;
  return randomIntent({ authorization: signAuthorization(privateKey, requirement) });
}

test('a lone deposit is settled by the token’s own evidence, below the gas at which a payer would be banned', async () => {
  const channel = await channels.open(2n * DEPOSIT);
  expect(await settle(channel.deposit(DEPOSIT))).toMatchObject([{ kind: 'settled', paid: DEPOSIT }]);
  expect(await balanceOf(channel)).toBe(DEPOSIT);
  const gas = bed.mined.map(({ gasUsed }) => Number(gasUsed));
  process.stderr.write(`gas of a lone deposit: ${gas[0]}\n`);
  expect(gas[0]).toBeLessThan(200_000);
  expect(bed.relayer.refuses?.(channel.config.payer)).toBeNull();
  expect(await settle(channel.deposit(DEPOSIT))).toMatchObject([{ kind: 'settled', paid: DEPOSIT }]);
  expect(await balanceOf(channel)).toBe(2n * DEPOSIT);
});

test('deposits and plain payments share a transaction, which does not run out of gas', async () => {
  const opened = await channelsOf(40);
  const intents = [
    ...opened.slice(0, 20).map((channel) => channel.deposit(DEPOSIT)),
    ...(await Promise.all(Array.from({ length: 20 }, transfer))),
    ...opened.slice(20).map((channel) => channel.deposit(DEPOSIT)),
  ];
  expect(kinds(await settle(...intents))).toEqual(Array(60).fill('settled'));
  expect(bed.mined.map(({ payments, settled }) => [payments, settled])).toEqual([[60, 60]]);
  expect(new Set(await Promise.all(opened.map(balanceOf)))).toEqual(new Set([DEPOSIT]));
  expect(bed.warnings).toEqual([]);
});

test('more deposits than a transaction has gas for go in several, and none of them fails for want of gas', async () => {
  const opened = await channelsOf(120);
  expect(kinds(await settle(...opened.map((channel) => channel.deposit(DEPOSIT))))).toEqual(Array(120).fill('settled'));
  expect(bed.mined.every(({ payments, settled }) => payments === settled)).toBe(true);
  process.stderr.write(`deposits a transaction: ${bed.mined.map(({ payments }) => payments)}\n`);
  expect([bed.mined.length > 1, bed.warnings]).toEqual([true, []]);
});

test('a deposit that a third party has sent is settled once, and costs us nothing more', async () => {
  const channel = await channels.open(2n * DEPOSIT);
  const intent = channel.deposit(DEPOSIT);
  const { call } = intent;
  if (!call) throw new Error('a deposit without a call');
  const hash = await stage.sender.sendTransaction({ to: bytesToHex(call.to), data: bytesToHex(call.data) });
  await stage.chain.waitForTransactionReceipt({ hash });
  const [outcome] = await settle({ ...intent, broadcast: true, hasCode: true });
  expect(outcome).toMatchObject({ kind: 'settled', paid: DEPOSIT });
  expect(outcome?.kind === 'settled' && bytesToHex(outcome.transaction)).toBe(hash);
  expect([await balanceOf(channel), bed.mined]).toEqual([DEPOSIT, []]);
});

test('a deposit that its payer cannot pay fails alone, and the others of its batch are settled', async () => {
  const [poor, ...others] = await Promise.all([
    channels.open(DEPOSIT - 1n),
    ...(await channelsOf(4)).map(async (one) => one),
  ]);
  if (!poor) throw new Error('no channel');
  const outcomes = await settle(...[poor, ...others].map((channel) => channel.deposit(DEPOSIT)));
  expect(kinds(outcomes)).toEqual(['failed', ...Array(4).fill('settled')]);
  expect(await balanceOf(poor)).toBe(0n);
});

test('a deposit is simulated as the call that will be sent, and one that would fail is refused', async () => {
  const channel = await channels.open(DEPOSIT);
  const { signal } = new AbortController();
  await bed.check.simulate(channel.deposit(DEPOSIT), signal);
  await expect(bed.check.simulate(channel.deposit(DEPOSIT + 1n), signal)).rejects.toBeInstanceOf(PaymentRefused);
});
