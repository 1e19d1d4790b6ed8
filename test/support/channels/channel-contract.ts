import { randomBytes } from 'node:crypto';
import {
  type Abi,
  createPublicClient,
  createWalletClient,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  http,
  keccak256,
  parseEventLogs,
} from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { artifacts, BATCH_SETTLEMENT, DEPOSIT_COLLECTOR, USDC } from '../../../dev/contracts.ts';
import { createAccount, type EmbeddedNetwork } from '../../../dev/network.ts';
import { arcWithRoom } from '../chain/arc-with-room.ts';

export const settlementAbi = artifacts.BatchSettlement.abi as Abi;

/** A channel's terms, in the order of the contract's struct. */
export interface ChannelConfig {
  readonly payer: Hex;
  readonly payerAuthorizer: Hex;
  readonly receiver: Hex;
  readonly receiverAuthorizer: Hex;
  readonly token: Hex;
  readonly withdrawDelay: number;
  readonly salt: Hex;
}

const DOMAIN = { name: 'x402 Batch Settlement', version: '1', chainId: 5042, verifyingContract: BATCH_SETTLEMENT };
const field = (name: string, type: string) => ({ name, type });
const TYPES = {
  Voucher: [field('channelId', 'bytes32'), field('maxClaimableAmount', 'uint128')],
  Refund: [field('channelId', 'bytes32'), field('nonce', 'uint256'), field('amount', 'uint128')],
  ClaimEntry: [field('channelId', 'bytes32'), field('maxClaimableAmount', 'uint128'), field('totalClaimed', 'uint128')],
  ClaimBatch: [field('claims', 'ClaimEntry[]')],
  ReceiveWithAuthorization: [
    ...[field('from', 'address'), field('to', 'address'), field('value', 'uint256')],
    ...[field('validAfter', 'uint256'), field('validBefore', 'uint256'), field('nonce', 'bytes32')],
  ],
};

/** A row of a claim: what the payer signed, and how much of it is recorded. */
export interface Row {
  readonly config: ChannelConfig;
  readonly max: bigint;
  readonly total: bigint;
  readonly signature?: Hex;
}

/** A payer, a receiver and its authorizer over the settlement contract of an embedded network, through viem alone. */
export function createChannelStage(network: EmbeddedNetwork) {
  const [payer, authorizer] = [
    privateKeyToAccount(createAccount().privateKey),
    privateKeyToAccount(createAccount().privateKey),
  ];
  const receiver = createAccount().address;
  const chain = createPublicClient({ chain: arcWithRoom, transport: http(network.rpcUrl), pollingInterval: 30 });
  const sender = createWalletClient({
    account: privateKeyToAccount(network.relayer.privateKey),
    chain: arcWithRoom,
    transport: http(network.rpcUrl),
  });

  function read<T>(functionName: string, args: readonly unknown[] = []): Promise<T> {
    return chain.readContract({ address: BATCH_SETTLEMENT, abi: settlementAbi, functionName, args }) as Promise<T>;
  }

  /** Simulates first, so that a refusal shows the contract's own error, then sends and waits. Returns the contract's events. */
  async function call(functionName: string, args: readonly unknown[], by = sender) {
    const request = { address: BATCH_SETTLEMENT, abi: settlementAbi, functionName, args };
    await chain.simulateContract({ ...request, account: by.account });
    const hash = await by.writeContract(request);
    const receipt = await chain.waitForTransactionReceipt({ hash });
    const logs = parseEventLogs({ abi: settlementAbi, logs: receipt.logs }) as unknown as readonly {
      eventName: string;
      args: Record<string, unknown>;
    }[];
    return { gasUsed: receipt.gasUsed, events: logs.map(({ eventName, args: told }) => ({ eventName, ...told })) };
  }

  function signTyped(signer: PrivateKeyAccount, primaryType: keyof typeof TYPES, message: Record<string, unknown>) {
    return signer.signTypedData({ domain: DOMAIN, types: TYPES, primaryType, message });
  }

  const idOf = (config: ChannelConfig): Promise<Hex> => read<Hex>('getChannelId', [config]);
  const signVoucher = async (config: ChannelConfig, max: bigint, signer = payer): Promise<Hex> =>
    signTyped(signer, 'Voucher', { channelId: await idOf(config), maxClaimableAmount: max });

  async function claimsOf(rows: readonly Row[]) {
    return Promise.all(
      rows.map(async ({ config, max, total, signature }) => ({
        voucher: { channel: config, maxClaimableAmount: max },
        signature: signature ?? (await signVoucher(config, max)),
        totalClaimed: total,
      })),
    );
  }

  async function signBatch(rows: readonly Row[], signer = authorizer): Promise<Hex> {
    const claims = await Promise.all(
      rows.map(async ({ config, max, total }) => ({
        channelId: await idOf(config),
        maxClaimableAmount: max,
        totalClaimed: total,
      })),
    );
    return signTyped(signer, 'ClaimBatch', { claims });
  }

  async function signDeposit(
    config: ChannelConfig,
    amount: bigint,
    salt = BigInt(`0x${randomBytes(32).toString('hex')}`),
  ) {
    const nonce = keccak256(
      encodeAbiParameters([{ type: 'bytes32' }, { type: 'uint256' }], [await idOf(config), salt]),
    );
    // By the chain's clock, which tests move forward.
    const validBefore = (await chain.getBlock()).timestamp + 600n;
    const domain = { name: 'USDC', version: '2', chainId: 5042, verifyingContract: USDC };
    const message = { from: config.payer, to: DEPOSIT_COLLECTOR, value: amount, validAfter: 0n, validBefore, nonce };
    const signature = await payer.signTypedData({
      domain,
      types: TYPES,
      primaryType: 'ReceiveWithAuthorization',
      message,
    });
    const types = [{ type: 'uint256' }, { type: 'uint256' }, { type: 'uint256' }, { type: 'bytes' }];
    return encodeAbiParameters(types, [0n, validBefore, salt, signature]);
  }

  return {
    payer,
    receiver,
    authorizer,
    chain,
    sender,
    read,
    call,
    idOf,
    signVoucher,
    claimsOf,
    signBatch,
    signDeposit,
    /** A channel that no other test has: its salt is random. */
    config: (more: Partial<ChannelConfig> = {}): ChannelConfig => ({
      payer: payer.address,
      payerAuthorizer: payer.address,
      receiver,
      receiverAuthorizer: authorizer.address,
      token: USDC,
      withdrawDelay: 900,
      salt: `0x${randomBytes(32).toString('hex')}`,
      ...more,
    }),
    deposit: async (config: ChannelConfig, amount: bigint) =>
      call('deposit', [config, amount, DEPOSIT_COLLECTOR, await signDeposit(config, amount)]),
    claim: async (rows: readonly Row[]) => call('claimWithSignature', [await claimsOf(rows), await signBatch(rows)]),
    signRefund: async (config: ChannelConfig, nonce: bigint, amount: bigint, signer = authorizer) =>
      signTyped(signer, 'Refund', { channelId: await idOf(config), nonce, amount }),
    /** A wallet for an account of its own, with gas. */
    walletOf: async (account: PrivateKeyAccount) => {
      await network.fundNative(account.address, 10n ** 18n);
      return createWalletClient({ account, chain: arcWithRoom, transport: http(network.rpcUrl) });
    },
    /** Base units of USDC. */
    usdcOf: (address: Hex): Promise<bigint> =>
      chain.readContract({
        address: USDC,
        abi: artifacts.Usdc.abi as Abi,
        functionName: 'balanceOf',
        args: [address],
      }) as Promise<bigint>,
    encode: (functionName: string, args: readonly unknown[]): Hex =>
      encodeFunctionData({ abi: settlementAbi, functionName, args }),
  };
}
