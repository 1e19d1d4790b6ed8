import { type AbiEvent, type AbiFunction, type Hex, pad, toEventSelector, toFunctionSelector, zeroAddress } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { artifacts, BATCH_SETTLEMENT, DEPOSIT_COLLECTOR, USDC } from '../../../dev/contracts.ts';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { type ChannelConfig, createChannelStage, settlementAbi } from '../../support/channels/channel-contract.ts';

/** What callers of the scheme's own contract compile into their code. */
const SELECTORS: Record<string, Hex> = {
  channels: '0x7a7ebd7b',
  pendingWithdrawals: '0xb7f06ebe',
  refundNonce: '0xf0dc792e',
  receivers: '0x21ff6389',
  getChannelId: '0x5e5e0b87',
  getVoucherDigest: '0x862bb199',
  getRefundDigest: '0xe25cf189',
  getClaimBatchDigest: '0x488ccc3b',
  deposit: '0x140f1e75',
  claim: '0x29237b0c',
  settle: '0x9db32a8f',
  claimWithSignature: '0xe43ce1f2',
  refund: '0xdce4bfae',
  refundWithSignature: '0xb77433e9',
  initiateWithdraw: '0xcf5cf3dc',
  finalizeWithdraw: '0xe88377b1',
  multicall: '0xac9650d8',
};
const TOPICS: Record<string, Hex> = {
  ChannelCreated: '0x69d8248d5566bdb2ebc4d218970710d8378a2ff9b709a999e052b71970f808fa',
  ChannelClosed: '0x8d5942f197f362dfd44dfdc1b0b7a9721c9151b67f55817c83349271d3c08d37',
  Deposited: '0x6c2a09353b5e75e70d0b9778b80a413809bb235d46c211811c474b3346791d89',
  Claimed: '0x36bd546bb573e8921fdbfd934bbed62d872796b01792cd240cce27f79dd3eddd',
  Settled: '0x7337b4386b690fdb8ba66905b92b9d45d33bc6626ee2620c905fb150ec0cc47d',
  Refunded: '0xa84286cf8ebc7903a663c77c8d99aa92b600d4c2fcca872a5d4a663db4eb394b',
  WithdrawInitiated: '0xe4280d0d903c7f258f62b07c62f262377cbaa23f7791d78126e6446e0f0e3c23',
  WithdrawFinalized: '0x546ce1e2242cd930c196bd08b894443562d709b4fffe4f028a75a6d233efc6e3',
};
const ERRORS: Record<string, Hex> = {
  InvalidChannel: '0xea3a9a39',
  ZeroDeposit: '0x56316e87',
  DepositOverflow: '0x1132981b',
  InvalidSignature: '0x8baa579f',
  NotReceiverAuthorizer: '0xf5e2237d',
  NotAuthorizedToClaim: '0xdefb7069',
  NotAuthorizedToRefund: '0x7864f008',
  ClaimExceedsCeiling: '0xf1789775',
  ClaimExceedsBalance: '0x7d8242b6',
  WithdrawalAlreadyPending: '0xa2aed0f0',
  WithdrawalNotPending: '0x3a0a1ca6',
  NotAuthorizedToFinalizeWithdraw: '0x15f969d5',
  WithdrawDelayNotElapsed: '0xf3965827',
  NothingToWithdraw: '0xd0d04f60',
  WithdrawAmountExceedsAvailable: '0x6d3d5764',
  WithdrawDelayOutOfRange: '0x4574fab6',
  EmptyBatch: '0xc2e5347d',
  DepositCollectionFailed: '0xeb43592c',
  InvalidCollector: '0x18b1afd4',
  InvalidRefundNonce: '0x164f1afe',
  ZeroRefund: '0xd758525c',
  ECDSAInvalidSignature: '0xf645eedf',
  ECDSAInvalidSignatureLength: '0xfce698f7',
  ECDSAInvalidSignatureS: '0xd78bce0c',
  ReentrancyGuardReentrantCall: '0x3ee5aeb5',
  SafeERC20FailedOperation: '0x5274afe7',
  FailedCall: '0xd6bda275',
};
/** Half the order of secp256k1, times two. */
const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const DELAY_SECONDS = 900;

describe('the settlement contract as its callers see it', () => {
  const ofType = (type: string) => settlementAbi.filter((entry) => entry.type === type) as { name: string }[];

  test('has the scheme’s functions, events and errors, by the selectors that clients have compiled in', () => {
    for (const [name, selector] of Object.entries(SELECTORS)) {
      const found = ofType('function').find((entry) => entry.name === name);
      expect(found && toFunctionSelector(found as AbiFunction), name).toBe(selector);
    }
    const topics = ofType('event').map((entry) => [entry.name, toEventSelector(entry as AbiEvent)]);
    expect(Object.fromEntries(topics)).toEqual(TOPICS);
    const errors = ofType('error').map((entry) => [
      entry.name,
      toFunctionSelector({
        ...entry,
        type: 'function',
        stateMutability: 'view',
        outputs: [],
      } as unknown as AbiFunction),
    ]);
    expect(Object.fromEntries(errors)).toEqual(ERRORS);
  });

  test('collects deposits through the scheme’s interface', () => {
    const functions = artifacts.DepositCollector.abi.filter(({ type }) => type === 'function') as AbiFunction[];
    expect(Object.fromEntries(functions.map((entry) => [entry.name, toFunctionSelector(entry)]))).toEqual({
      collect: '0xe416d8d3',
      x402BatchSettlement: '0x4dec6d95',
    });
  });
});

let network: EmbeddedNetwork;
let stage: ReturnType<typeof createChannelStage>;
let config: ChannelConfig;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  stage = createChannelStage(network);
  await network.fundUsdc(stage.payer.address, 1_000_000n);
});
afterAll(() => network?.stop());
beforeEach(() => {
  config = stage.config();
});

const stateOf = async (id: Hex) => {
  const [balance, totalClaimed] = await stage.read<[bigint, bigint]>('channels', [id]);
  return { balance, totalClaimed };
};
const pendingOf = async (id: Hex) => (await stage.read<[bigint, number]>('pendingWithdrawals', [id]))[0];
const refused = (call: Promise<unknown>) =>
  call.then(
    () => 'nothing',
    (error: Error) => /(?:Error: |custom error 0x[0-9a-f]+: )?(\w+)\(/.exec(error.message)?.[1] ?? error.message,
  );

describe('digests', () => {
  const vector = {
    payer: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    payerAuthorizer: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    receiver: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
    receiverAuthorizer: '0x90F79bf6EB2c4f870365E785982E1f101E93b906',
    token: USDC,
    withdrawDelay: 86_400,
    salt: pad('0x00'),
  } as const;
  const ID = '0x7079e3d666d15fab77eeb12a54367d07dc723ce2711533632e93980d935f0bb5';

  test('are those that the scheme’s own contract computes for chain 5042', async () => {
    expect(await stage.read('eip712Domain')).toEqual([
      ...['0x0f', 'x402 Batch Settlement', '1', 5042n, BATCH_SETTLEMENT, pad('0x00'), []],
    ]);
    expect(await stage.idOf(vector)).toBe(ID);
    expect(await stage.read('getVoucherDigest', [ID, 5000n])).toBe(
      '0x811977deba3289eb1bd47499bae42f1392ded1932ba301092c3ed94ddcc0af33',
    );
    expect(await stage.read('getRefundDigest', [ID, 0n, 1234n])).toBe(
      '0x248a13e40b9cdebb85dc6832b4a52637f166f606dd525f913abfb76431b5f0f5',
    );
    const row = { voucher: { channel: vector, maxClaimableAmount: 5000n }, signature: '0x', totalClaimed: 4000n };
    expect(await stage.read('getClaimBatchDigest', [[row]])).toBe(
      '0x1b905b536da1802032491c744b8efe9bfb1d6bd364bf640aa967eb308bde23aa',
    );
    expect(await stage.read('getClaimBatchDigest', [[]])).toBe(
      '0x119bc2c215958f26bea4d31a8d35844b01f8c127bbf55b43eccd445d28eef37f',
    );
  });

  test('of the five types are published', async () => {
    const names = ['CHANNEL_CONFIG', 'VOUCHER', 'REFUND', 'CLAIM_ENTRY', 'CLAIM_BATCH'];
    expect(await Promise.all(names.map((name) => stage.read(`${name}_TYPEHASH`)))).toEqual([
      '0x1c9a06ceab9b0ebbd3301dc56c9111bb6d9af421356dc9ccb3b7084c755db308',
      '0x1e1bd6ff84c3e0d9029a292b212e039c0ca97ec497c55191a4a5874294609a69',
      '0xbe23ad087435072cd69b49cc5b92de10ee610fce7ae0ab428307972d764bb216',
      '0x30b9a0367528fca13c3e8ec6134c3113f1887ebe7a1ad61de0955aac288b0cf5',
      '0x42bd57c010b870c2e96203c66341f28a6a19b4d56a74533a8eb5f706b9fd6d57',
    ]);
  });
});

describe('a deposit', () => {
  test('opens a channel once and tops it up later; the money lies in the contract', async () => {
    const before = await stage.usdcOf(BATCH_SETTLEMENT);
    const first = await stage.deposit(config, 3000n);
    expect(first.events.map(({ eventName }) => eventName)).toEqual(['ChannelCreated', 'Deposited']);
    const more = await stage.deposit(config, 500n);
    expect(more.events).toMatchObject([{ eventName: 'Deposited', amount: 500n, newBalance: 3500n }]);
    expect(await stateOf(await stage.idOf(config))).toEqual({ balance: 3500n, totalClaimed: 0n });
    expect((await stage.usdcOf(BATCH_SETTLEMENT)) - before).toBe(3500n);
  });

  test('is refused by name where its channel makes no sense', async () => {
    const deposit = async (more: Partial<ChannelConfig>, amount = 1n, collector: Hex = DEPOSIT_COLLECTOR) =>
      refused(stage.call('deposit', [{ ...config, ...more }, amount, collector, '0x']));
    for (const name of ['payer', 'receiver', 'receiverAuthorizer', 'token'])
      expect(await deposit({ [name]: zeroAddress }), name).toBe('InvalidChannel');
    for (const withdrawDelay of [899, 2_592_001])
      expect(await deposit({ withdrawDelay })).toBe('WithdrawDelayOutOfRange');
    expect(await deposit({}, 0n)).toBe('ZeroDeposit');
    expect(await deposit({}, 1n, zeroAddress)).toBe('InvalidCollector');
  });

  test('moves nothing when the same authorization comes a second time, and the collector serves the contract alone', async () => {
    const data = await stage.signDeposit(config, 700n);
    await stage.call('deposit', [config, 700n, DEPOSIT_COLLECTOR, data]);
    await expect(stage.call('deposit', [config, 700n, DEPOSIT_COLLECTOR, data])).rejects.toThrow(
      'authorization is used or canceled',
    );
    const collect = {
      address: DEPOSIT_COLLECTOR,
      abi: artifacts.DepositCollector.abi,
      functionName: 'collect',
      args: [stage.payer.address, USDC, 700n, await stage.idOf(config), data],
    };
    await expect(stage.chain.simulateContract(collect)).rejects.toThrow('OnlyX402BatchSettlement');
    // For another channel the nonce is another one, and the signature does not fit.
    await expect(stage.call('deposit', [stage.config(), 700n, DEPOSIT_COLLECTOR, data])).rejects.toThrow(
      'invalid signature',
    );
  });
});

describe('a claim', () => {
  beforeEach(async () => {
    await stage.deposit(config, 5000n);
  });

  test('records vouchers of several channels, skips what is recorded, and pays nothing until settled', async () => {
    const other = stage.config();
    await stage.deposit(other, 1000n);
    const rows = [
      { config, max: 4000n, total: 3000n },
      { config: other, max: 800n, total: 800n },
    ];
    expect((await stage.claim(rows)).events).toMatchObject([
      { eventName: 'Claimed', claimAmount: 3000n, newTotalClaimed: 3000n },
      { eventName: 'Claimed', claimAmount: 800n, newTotalClaimed: 800n },
    ]);
    // Recorded already, with a signature that nobody looks at any more; the first channel's voucher serves on up to its ceiling.
    const again = [
      { config: other, max: 800n, total: 800n, signature: '0x' as Hex },
      { config, max: 4000n, total: 4000n },
    ];
    expect((await stage.claim(again)).events).toMatchObject([{ claimAmount: 1000n, newTotalClaimed: 4000n }]);
    const before = await stage.usdcOf(stage.receiver);
    const [claimed, settled] = await stage.read<[bigint, bigint]>('receivers', [stage.receiver, USDC]);
    expect((await stage.call('settle', [stage.receiver, USDC])).events).toMatchObject([
      { eventName: 'Settled', amount: claimed - settled },
    ]);
    expect((await stage.usdcOf(stage.receiver)) - before).toBe(claimed - settled);
    expect((await stage.call('settle', [stage.receiver, USDC])).events).toEqual([]);
  });

  test('is refused whole for one bad row, with the reason', async () => {
    const signed = async (max: bigint) => stage.signVoucher(config, max);
    const good = { config, max: 4000n, total: 4000n };
    const claim = async (...rows: Parameters<typeof stage.claim>[0]) => refused(stage.claim(rows));
    const high = await signed(4000n).then((signature): Hex => {
      const s = CURVE_ORDER - BigInt(`0x${signature.slice(66, 130)}`);
      const v = signature.endsWith('1b') ? '1c' : '1b';
      return `${signature.slice(0, 66)}${s.toString(16).padStart(64, '0')}${v}` as Hex;
    });
    const zeroV = (await signed(4000n)).replace(/1b$/, '00').replace(/1c$/, '01') as Hex;
    expect(await claim({ ...good, max: 3999n })).toBe('ClaimExceedsCeiling');
    expect(await claim({ ...good, max: 5001n, total: 5001n })).toBe('ClaimExceedsBalance');
    expect(await claim({ ...good, signature: high })).toBe('ECDSAInvalidSignatureS');
    expect(await claim({ ...good, signature: zeroV })).toBe('ECDSAInvalidSignature');
    expect(await claim({ ...good, signature: '0x1234' })).toBe('ECDSAInvalidSignatureLength');
    expect(await claim({ ...good, signature: await signed(3999n) })).toBe('InvalidSignature');
    expect(await claim({ ...good, signature: await stage.signVoucher(config, 4000n, stage.authorizer) })).toBe(
      'InvalidSignature',
    );
    expect(await claim(good, { ...good, config: stage.config({ receiverAuthorizer: stage.receiver }) })).toBe(
      'NotReceiverAuthorizer',
    );
    expect(await refused(stage.call('claimWithSignature', [[], '0x']))).toBe('EmptyBatch');
    const rows = await stage.claimsOf([good]);
    expect(await refused(stage.call('claimWithSignature', [rows, await stage.signBatch([good], stage.payer)]))).toBe(
      'InvalidSignature',
    );
    expect(await refused(stage.call('claim', [rows]))).toBe('NotAuthorizedToClaim');
    expect(await stateOf(await stage.idOf(config))).toEqual({ balance: 5000n, totalClaimed: 0n });
  });

  test('takes the vouchers of a payer that is a contract, as long as it stands by its signature', async () => {
    const wallet = await network.deploy('SmartWallet', [stage.payer.address]);
    const own = stage.config({ payer: wallet, payerAuthorizer: zeroAddress });
    await network.fundUsdc(wallet, 2000n);
    await stage.call('deposit', [own, 2000n, DEPOSIT_COLLECTOR, await stage.signDeposit(own, 2000n)]);
    const row = { config: own, max: 2000n, total: 1500n };
    expect((await stage.claim([row])).events).toMatchObject([{ claimAmount: 1500n }]);
    const owner = await stage.walletOf(stage.payer);
    const hash = await owner.writeContract({
      address: wallet,
      abi: artifacts.SmartWallet.abi,
      functionName: 'setOwner',
      args: [stage.receiver],
    });
    await stage.chain.waitForTransactionReceipt({ hash });
    expect(await refused(stage.claim([{ ...row, total: 2000n }]))).toBe('InvalidSignature');
  });
});

describe('a refund', () => {
  beforeEach(async () => {
    await stage.deposit(config, 5000n);
    await stage.claim([{ config, max: 1000n, total: 1000n }]);
  });
  const refund = async (nonce: bigint, amount: bigint, signer = stage.authorizer) =>
    stage.call('refundWithSignature', [config, amount, nonce, await stage.signRefund(config, nonce, amount, signer)]);

  test('returns at most what is not claimed, and uses up its nonce even where nothing is left', async () => {
    const before = await stage.usdcOf(stage.payer.address);
    expect((await refund(0n, 1500n)).events).toMatchObject([{ eventName: 'Refunded', amount: 1500n }]);
    expect((await refund(1n, 9999n)).events).toMatchObject([{ eventName: 'Refunded', amount: 2500n }]);
    expect((await refund(2n, 1n)).events).toEqual([]);
    expect(await stage.read('refundNonce', [await stage.idOf(config)])).toBe(3n);
    expect((await stage.usdcOf(stage.payer.address)) - before).toBe(4000n);
  });

  test('is refused with another nonce, of nothing, and without the receiver’s authorizer', async () => {
    expect(await refused(refund(1n, 5n))).toBe('InvalidRefundNonce');
    expect(await refused(refund(0n, 0n))).toBe('ZeroRefund');
    expect(await refused(refund(0n, 5n, stage.payer))).toBe('InvalidSignature');
    expect(await refused(stage.call('refund', [config, 5n]))).toBe('NotAuthorizedToRefund');
  });

  test('closes a channel that was never claimed from, and the same terms open it again', async () => {
    const fresh = stage.config();
    await stage.deposit(fresh, 100n);
    const signature = await stage.signRefund(fresh, 0n, 100n);
    const { events } = await stage.call('refundWithSignature', [fresh, 100n, 0n, signature]);
    expect(events.map(({ eventName }) => eventName)).toEqual(['Refunded', 'ChannelClosed']);
    expect((await stage.deposit(fresh, 50n)).events.map(({ eventName }) => eventName)).toEqual([
      'ChannelCreated',
      'Deposited',
    ]);
  });

  test('and a claim go together in one transaction, or not at all', async () => {
    const rows = [{ config, max: 2000n, total: 2000n }];
    const calls = [
      stage.encode('claimWithSignature', [await stage.claimsOf(rows), await stage.signBatch(rows)]),
      stage.encode('refundWithSignature', [config, 3000n, 0n, await stage.signRefund(config, 0n, 3000n)]),
    ];
    const { events } = await stage.call('multicall', [calls]);
    expect(events.map(({ eventName }) => eventName)).toEqual(['Claimed', 'Refunded']);
    expect(await refused(stage.call('multicall', [calls]))).toBe('InvalidRefundNonce');
  });
});

describe('a withdrawal', () => {
  let wallet: Awaited<ReturnType<typeof stage.walletOf>>;
  beforeEach(async () => {
    wallet = await stage.walletOf(stage.payer);
    await stage.deposit(config, 5000n);
  });
  const initiate = (amount: bigint, by = wallet) => stage.call('initiateWithdraw', [config, amount], by);
  const finalize = (by = wallet) => stage.call('finalizeWithdraw', [config], by);
  const afterDelay = async () => {
    await network.rpc('evm_increaseTime', [DELAY_SECONDS]);
    await network.mine();
  };

  test('pays out after its delay what is not claimed by then; claims during the delay come first', async () => {
    const { events } = await initiate(4000n);
    expect(events).toMatchObject([{ eventName: 'WithdrawInitiated', amount: 4000n }]);
    expect(await refused(finalize())).toBe('WithdrawDelayNotElapsed');
    await stage.claim([{ config, max: 3000n, total: 3000n }]);
    await afterDelay();
    expect((await finalize()).events).toMatchObject([{ eventName: 'WithdrawFinalized', amount: 2000n }]);
    expect(await stateOf(await stage.idOf(config))).toEqual({ balance: 3000n, totalClaimed: 3000n });
  });

  test('that was finalized leaves nothing for a later claim', async () => {
    await initiate(5000n);
    await afterDelay();
    await finalize();
    expect(await refused(stage.claim([{ config, max: 1n, total: 1n }]))).toBe('ClaimExceedsBalance');
  });

  test('is the payer’s alone, one at a time, and within what is there', async () => {
    const other = await stage.walletOf(privateKeyToAccount(createAccount().privateKey));
    expect(await refused(initiate(1n, other))).toBe('InvalidChannel');
    expect(await refused(initiate(0n))).toBe('NothingToWithdraw');
    expect(await refused(initiate(5001n))).toBe('WithdrawAmountExceedsAvailable');
    expect(await refused(finalize(other))).toBe('NotAuthorizedToFinalizeWithdraw');
    expect(await refused(finalize())).toBe('WithdrawalNotPending');
    await initiate(1n);
    expect(await refused(initiate(1n))).toBe('WithdrawalAlreadyPending');
  });

  test('is cut by a refund, and ended by one that covers it', async () => {
    const id = await stage.idOf(config);
    await initiate(3000n);
    await stage.call('refundWithSignature', [config, 1000n, 0n, await stage.signRefund(config, 0n, 1000n)]);
    expect(await pendingOf(id)).toBe(2000n);
    await stage.call('refundWithSignature', [config, 2500n, 1n, await stage.signRefund(config, 1n, 2500n)]);
    expect(await pendingOf(id)).toBe(0n);
  });
});
