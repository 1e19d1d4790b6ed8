import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OpenChainClient } from '../../../../src/chain/rpc/client.ts';
import { UpstreamFailed } from '../../../../src/errors.ts';
import { bytesToHex } from '../../../../src/lib/hex.ts';
import { type ChainCheck, createChainCheck } from '../../../../src/payment/usdc/checks.ts';
import { balanceOfCalldata, isValidSignatureCalldata, transferCalldata } from '../../../../src/payment/usdc/token.ts';
import { openClient } from '../../../support/chain/client.ts';
import { RpcFault, type RpcServer, startRpcServer } from '../../../support/chain/rpc-server.ts';
import { watchedChain } from '../../../support/chain/watched-chain.ts';
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts';
import { USDC } from '../../../support/usdc/payments.ts';

const SENDER = `0x${'aa'.repeat(20)}` as const;

let node: RpcServer;
let chain: OpenChainClient;
let check: ChainCheck;
let clock: ManualClock;
let sender: `0x${string}` = SENDER;
beforeEach(async () => {
  sender = SENDER;
  node = await startRpcServer();
  chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 30_000 });
  clock = createManualClock(1_800_000_000_000);
  check = createChainCheck(chain, USDC, () => sender, clock);
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

const STAYS = new AbortController().signal;
const newAuthorization = () => ({
  from: randomBytes(20),
  to: randomBytes(20),
  nonce: randomBytes(32),
  value: 500n,
  validAfter: 0n,
  validBefore: 2n ** 40n,
  signature: randomBytes(65),
});
const answer = (block: bigint, flags: bigint) => () =>
  `0x${[block, (500n << 8n) | flags].map((value) => value.toString(16).padStart(64, '0')).join('')}`;

/** A question with the others of its moment: the clock goes on by the moment that they wait. */
async function gathered<T>(asked: Promise<T>): Promise<T> {
  await clock.advance(4);
  return asked;
}

test.each([
  [5000n, 3800],
  [1200n, 0],
  [7n, 0],
])('a reading at block %i is good up to block %i, for nodes of another height', async (block, upTo) => {
  node.methods.eth_call = answer(block, 1n);
  const reading = { used: false, balance: 500n, hasCode: false, block: upTo };
  expect(await gathered(check.read(newAuthorization(), STAYS))).toEqual(reading);
  expect(
    await gathered(check.admit(newAuthorization(), { client: 'c', hasFailed: false, signal: STAYS }, true)),
  ).toEqual(reading);
});

test('with two providers the agreed head counts, not the block of the one that was read; without one nobody is read', async () => {
  const other = await startRpcServer();
  const two = openClient({ rpcUrls: [node.url, other.url], chainId: 5042, timeoutMs: 30_000, clock });
  const witnessed = createChainCheck(two, USDC, () => SENDER, clock);
  for (const { methods } of [node, other]) {
    methods.eth_call = answer(9_000_000n, 1n);
    methods.eth_blockNumber = () => '0x1388';
  }
  await expect(gathered(witnessed.read(newAuthorization(), STAYS))).rejects.toMatchObject({
    status: 503,
    code: 'chain_busy',
    charged: false,
  });
  expect(await two.agreed.head()).toBe(5000);
  expect(await gathered(witnessed.read(newAuthorization(), STAYS))).toMatchObject({ block: 3800 });
  await two.close();
  await other.stop();
});

test('two payers at once cost one request, and the one who leaves meanwhile does not end it for the other', async () => {
  const leaver = new AbortController();
  node.methods.eth_call = () => {
    leaver.abort(new Error('gone'));
    return `${answer(5000n, 1n)()}${answer(0n, 3n)().slice(2 + 64)}`;
  };
  const reads = [check.read(newAuthorization(), leaver.signal), check.read(newAuthorization(), STAYS)];
  const [first, second] = await gathered(Promise.allSettled(reads));
  expect(first).toMatchObject({ status: 'rejected', reason: { message: 'gone' } });
  expect(second).toMatchObject({ status: 'fulfilled', value: { used: true } });
  expect(node.count('eth_call')).toBe(1);
});

test('a chain that does not answer is an upstream failure, and refuses no payer', async () => {
  node.fault = '500';
  await expect(gathered(check.read(newAuthorization(), STAYS))).rejects.toBeInstanceOf(UpstreamFailed);
  await expect(check.simulate({ authorization: newAuthorization(), call: null }, STAYS)).rejects.toBeInstanceOf(
    UpstreamFailed,
  );
  await expect(check.contractSigned(newAuthorization(), randomBytes(32), STAYS)).rejects.toBeInstanceOf(UpstreamFailed);
});

/** What was asked for by `eth_call`, in order. */
const calls = () =>
  (node.bodies.flat() as { method: string; params: [Record<string, string>, string] }[])
    .filter(({ method }) => method === 'eth_call')
    .map(({ params }) => params);

describe('a transfer that is tried out', () => {
  const price = (wei: string) => {
    node.methods.eth_gasPrice = () => wei;
  };
  const fail = (error: RpcFault, unless = (_call: Record<string, string>) => false) => {
    node.methods.eth_call = ([call]) => {
      if (unless(call as Record<string, string>)) return '0x';
      throw error;
    };
  };
  const simulated = () => check.simulate({ authorization: newAuthorization(), call: null }, STAYS).then(() => 'passed');
  const REFUSED = { reason: 'invalid_exact_evm_transaction_simulation_failed' };

  test('sees the settlement’s sender and a real gas price, so that a contract cannot distinguish it from the settlement', async () => {
    price('0x4a817c800');
    node.methods.eth_call = () => '0x';
    const authorization = newAuthorization();
    await check.simulate({ authorization, call: null }, STAYS);
    const [call, at] = calls()[0] ?? [];
    expect(call).toEqual({
      from: SENDER,
      to: USDC,
      data: transferCalldata(authorization),
      gas: '0x493e0',
      gasPrice: '0x4a817c800',
    });
    expect(at).toBe('latest');
    expect(node.bodies.flat()).toContainEqual(expect.objectContaining({ method: 'eth_gasPrice', params: [] }));
    sender = `0x${'bb'.repeat(20)}`;
    await check.simulate({ authorization, call: null }, STAYS);
    expect(calls()[1]?.[0]).toMatchObject({ from: sender });
  });

  test('ends with its buyer’s connection, and so does the question for the gas price', async () => {
    price('0x1');
    node.methods.eth_call = () => '0x';
    const watched = watchedChain(chain);
    await createChainCheck(watched.chain, USDC, () => SENDER, clock).simulate(
      { authorization: newAuthorization(), call: null },
      STAYS,
    );
    expect(watched.asked.map(({ method, signal }) => [method, signal === STAYS])).toEqual([
      ['eth_gasPrice', true],
      ['eth_call', true],
    ]);
  });

  test('asks for the gas price once in ten seconds', async () => {
    price('0x1');
    node.methods.eth_call = () => '0x';
    await simulated();
    price('0x2');
    await clock.advance(9999);
    await simulated();
    expect([node.count('eth_gasPrice'), calls()[1]?.[0]?.gasPrice]).toEqual([1, '0x1']);
    await clock.advance(1);
    await simulated();
    expect([node.count('eth_gasPrice'), calls()[2]?.[0]?.gasPrice]).toEqual([2, '0x2']);
  });

  test.each([
    ['reverts', new RpcFault(3, 'no words')],
    ['reverts by its words alone', new RpcFault(-32000, 'execution reverted: ECRecover')],
    ['runs out of gas', new RpcFault(-32000, 'out of gas')],
    ['meets an invalid opcode', new RpcFault(-32000, 'invalid opcode: INVALID')],
    ['underflows its stack', new RpcFault(-32000, 'stack underflow')],
    ['jumps where it must not', new RpcFault(-32000, 'bad jump destination')],
  ])('that %s refuses the payment', async (_, error) => {
    price('0x1');
    fail(error);
    await expect(simulated()).rejects.toMatchObject(REFUSED);
    expect(calls()).toHaveLength(1);
  });

  test.each(['insufficient funds for gas * price + value', 'Insufficient balance for gas'])(
    'whose sender cannot pay for gas (%s) is tried without a price',
    async (words) => {
      price('0x1');
      fail(new RpcFault(-32000, words), (call) => call.gasPrice === undefined);
      expect(await simulated()).toBe('passed');
      expect(calls().map(([call]) => call.gasPrice)).toEqual(['0x1', undefined]);
      node.methods.eth_call = ([call]) => {
        throw (call as { gasPrice?: string }).gasPrice ? new RpcFault(-32000, words) : new RpcFault(3, 'reverted');
      };
      await expect(simulated()).rejects.toMatchObject(REFUSED);
    },
  );

  test('that a node refuses for a reason of its own is an upstream failure', async () => {
    price('0x1');
    fail(new RpcFault(-32602, 'missing value for required argument 0'));
    const failure = await simulated().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UpstreamFailed);
    // The buyer's error names the failing part.
    expect(failure).toMatchObject({ message: expect.stringMatching(/^chain: /), charged: false });
    node.methods.eth_gasPrice = () => 'cheap';
    await expect(
      createChainCheck(chain, USDC, () => SENDER, clock).simulate(
        { authorization: newAuthorization(), call: null },
        STAYS,
      ),
    ).rejects.toBeInstanceOf(UpstreamFailed);
  });
});

describe('a contract that is asked for its signature (ERC-1271)', () => {
  const MAGIC = `0x1626ba7e${'0'.repeat(56)}`;
  const digest = randomBytes(32);
  const signed = (authorization = newAuthorization()) => check.contractSigned(authorization, digest, STAYS);

  test.each([
    ['says yes', MAGIC, true],
    ['says another word', `0xffffffff${'0'.repeat(56)}`, false],
    ['says yes and more', `${MAGIC}00`, false],
    ['says a short yes', '0x1626ba7e', false],
    ['has no code', '0x', false],
  ])('that %s is %j: %s', async (_, answered, expected) => {
    node.methods.eth_call = () => answered;
    const authorization = newAuthorization();
    expect(await signed(authorization)).toBe(expected);
    const [call, at] = calls()[0] ?? [];
    expect([call?.to, call?.gas, at]).toEqual([bytesToHex(authorization.from), '0x493e0', 'latest']);
    expect(call?.data).toBe(isValidSignatureCalldata(digest, authorization.signature));
  });

  test('and reverts has not signed; a node that refuses says nothing of it', async () => {
    node.methods.eth_call = () => {
      throw new RpcFault(3, 'reverted');
    };
    expect(await signed()).toBe(false);
    node.methods.eth_call = () => {
      throw new RpcFault(-32602, 'invalid argument');
    };
    await expect(signed()).rejects.toBeInstanceOf(UpstreamFailed);
  });
});

test('a balance is read at the end of the block that is asked for', async () => {
  node.methods.eth_call = () => `0x${77n.toString(16).padStart(64, '0')}`;
  const account = randomBytes(20);
  expect(await check.balanceAt(account, 100, STAYS)).toBe(77n);
  expect(calls()).toEqual([[{ to: USDC, data: balanceOfCalldata(account) }, '0x64']]);
  node.methods.eth_call = () => 'much';
  await expect(check.balanceAt(account, 100, STAYS)).rejects.toBeInstanceOf(UpstreamFailed);
});

test('the shared reads of unverified payers put clients without a failed call first, and of these the payers that have signed', async () => {
  node.methods.eth_call = () =>
    `0x${[5000n, 1n, 1n, 1n, 1n].map((one) => one.toString(16).padStart(64, '0')).join('')}`;
  const kinds: readonly [hasFailed: boolean, isSigned: boolean][] = [
    [true, false],
    [true, true],
    [false, false],
    [false, true],
  ];
  const asked = kinds.map(([hasFailed, isSigned], at) => {
    const authorization = newAuthorization();
    const look = check.admit(authorization, { client: `client ${at}`, hasFailed, signal: STAYS }, isSigned);
    return { look, payer: authorization.from.toString('hex') };
  });
  await gathered(Promise.all(asked.map(({ look }) => look)));
  const data = String(calls()[0]?.[0].data);
  const places = asked.map(({ payer }) => data.indexOf(payer));
  expect(places.every((place) => place > 0)).toBe(true);
  expect([...places].sort((a, b) => a - b)).toEqual([...places].reverse());
});

test('settlements rank first, simulations of verified payments next, then the shared reads of unverified payers, and their contracts last', async () => {
  Object.assign(node.methods, { eth_gasPrice: () => '0x1', eth_call: answer(5000n, 1n) });
  const watched = watchedChain(chain);
  const ranked = createChainCheck(watched.chain, USDC, () => SENDER, clock);
  const ranks = () => [...new Set(watched.asked.splice(0).map(({ rank }) => rank ?? 'sale'))];
  await gathered(ranked.read(newAuthorization(), STAYS));
  expect(ranks()).toEqual(['settle']);
  await gathered(ranked.admit(newAuthorization(), { client: 'c', hasFailed: false, signal: STAYS }, true));
  expect(ranks()).toEqual(['offer']);
  await ranked.simulate({ authorization: newAuthorization(), call: null }, STAYS);
  expect(ranks()).toEqual(['sale']);
  await ranked.contractSigned(newAuthorization(), randomBytes(32), STAYS);
  expect(ranks()).toEqual(['admit']);
  node.methods.eth_call = () => `0x${'0'.repeat(64)}`;
  await ranked.balanceAt(randomBytes(20), 1, STAYS);
  expect(ranks()).toEqual(['settle']);
});
