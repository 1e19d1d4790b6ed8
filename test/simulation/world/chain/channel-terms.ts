import { addressWord, bytesWords, readerOf, word } from './abi.ts';
import { type Hex, keccak, toHex } from './keys.ts';
import { domainOf, type Terms } from './token.ts';

// Payment channels as the scheme's contract knows them: what is signed, and the calls that carry it.

export const SETTLEMENT: Hex = '0x4020074e9df2ce1dee5a9c1b5c3f541d02a10003';
export const COLLECTOR: Hex = '0x4020806089470a89826cb9fb1f4059150b550004';

/** What a channel is; its id is a hash of all of it. */
export interface ChannelConfig {
  readonly payer: Hex;
  readonly payerAuthorizer: Hex;
  readonly receiver: Hex;
  readonly receiverAuthorizer: Hex;
  readonly token: Hex;
  /** Seconds. */
  readonly withdrawDelay: number;
  readonly salt: Hex;
}

/** Money on its way into a channel: the token's authorization without what follows from the channel. */
export interface SignedDeposit {
  readonly units: bigint;
  /** Unix seconds. */
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly salt: Hex;
  readonly signature: Buffer;
}

export const selector = (signature: string): string => toHex(keccak(Buffer.from(signature))).slice(2, 10);
const typeOf = (text: string): string => keccak(Buffer.from(text)).toString('hex');

const CONFIG = '(address,address,address,address,address,uint40,bytes32)';
const CLAIM = `((${CONFIG},uint128),bytes,uint128)`;
export const CALLS = {
  deposit: selector(`deposit(${CONFIG},uint128,address,bytes)`),
  claim: selector(`claimWithSignature(${CLAIM}[],bytes)`),
  settle: selector('settle(address,address)'),
  refund: selector(`refundWithSignature(${CONFIG},uint128,uint256,bytes)`),
  withdraw: selector(`initiateWithdraw(${CONFIG},uint128)`),
  finalize: selector(`finalizeWithdraw(${CONFIG})`),
  multicall: selector('multicall(bytes[])'),
  channels: selector('channels(bytes32)'),
  withdrawals: selector('pendingWithdrawals(bytes32)'),
  refundNonce: selector('refundNonce(bytes32)'),
  channelId: selector(`getChannelId(${CONFIG})`),
};

const CONFIG_TYPE = typeOf(
  'ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)',
);
const VOUCHER_TYPE = typeOf('Voucher(bytes32 channelId,uint128 maxClaimableAmount)');
const REFUND_TYPE = typeOf('Refund(bytes32 channelId,uint256 nonce,uint128 amount)');
const ENTRY = 'ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)';
const ENTRY_TYPE = typeOf(ENTRY);
const BATCH_TYPE = typeOf(`ClaimBatch(ClaimEntry[] claims)${ENTRY}`);

export const configWords = (config: ChannelConfig): string =>
  [config.payer, config.payerAuthorizer, config.receiver, config.receiverAuthorizer, config.token]
    .map(addressWord)
    .join('') +
  word(config.withdrawDelay) +
  config.salt.slice(2);

/** Bytes of a config in calldata. */
export const CONFIG_BYTES = 224;

export function readConfig(args: ReturnType<typeof readerOf>, at: number): ChannelConfig {
  const [payer, payerAuthorizer, receiver, receiverAuthorizer, token] = [0, 32, 64, 96, 128].map((more) =>
    args.address(at + more),
  ) as [Hex, Hex, Hex, Hex, Hex];
  const rest = { withdrawDelay: Number(args.number(at + 160)), salt: args.hash(at + 192) };
  return { payer, payerAuthorizer, receiver, receiverAuthorizer, token, ...rest };
}

/** What is signed for channels of one chain. */
export function createChannelTerms(chainId: number) {
  const domain = domainOf('x402 Batch Settlement', '1', chainId, SETTLEMENT);
  const typed = (struct: string): Buffer =>
    keccak(Buffer.concat([Buffer.from([0x19, 0x01]), domain, keccak(Buffer.from(struct, 'hex'))]));

  return {
    channelId: (config: ChannelConfig): Hex => toHex(typed(CONFIG_TYPE + configWords(config))),
    voucherDigest: (id: Hex, max: bigint): Buffer => typed(VOUCHER_TYPE + id.slice(2) + word(max)),
    refundDigest: (id: Hex, nonce: bigint, units: bigint): Buffer =>
      typed(REFUND_TYPE + id.slice(2) + word(nonce) + word(units)),
    batchDigest: (rows: readonly { readonly id: Hex; readonly max: bigint; readonly claimed: bigint }[]): Buffer => {
      const entries = rows.map(({ id, max, claimed }) =>
        keccak(Buffer.from(ENTRY_TYPE + id.slice(2) + word(max) + word(claimed), 'hex')),
      );
      return typed(BATCH_TYPE + keccak(Buffer.concat(entries)).toString('hex'));
    },
  };
}

export type ChannelTerms = ReturnType<typeof createChannelTerms>;

/** The nonce of a deposit's authorization: it binds the money to the channel. */
export const depositNonce = (id: Hex, salt: Hex): Hex => toHex(keccak(Buffer.from(id.slice(2) + salt.slice(2), 'hex')));

/** The token's authorization that a deposit is made of. */
export function depositTerms(id: Hex, { payer }: ChannelConfig, deposit: Omit<SignedDeposit, 'signature'>): Terms {
  const { units, validAfter, validBefore, salt } = deposit;
  return { from: payer, to: COLLECTOR, value: units, validAfter, validBefore, nonce: depositNonce(id, salt) };
}

export function depositCall(config: ChannelConfig, deposit: SignedDeposit): Hex {
  const { units, validAfter, validBefore, salt, signature } = deposit;
  const more =
    [validAfter, validBefore].map(word).join('') + salt.slice(2) + word(128) + bytesWords(signature.toString('hex'));
  const head = configWords(config) + word(units) + addressWord(COLLECTOR) + word(CONFIG_BYTES + 96);
  return `0x${CALLS.deposit}${head}${bytesWords(more)}`;
}

/** A deposit's calldata, read; null for any other call. */
export function readDeposit(data: Hex): { config: ChannelConfig; collector: Hex; deposit: SignedDeposit } | null {
  if (data.slice(2, 10) !== CALLS.deposit) return null;
  const args = readerOf(data.slice(10));
  const more = readerOf(args.bytes(CONFIG_BYTES + 64).slice(2));
  return {
    config: readConfig(args, 0),
    collector: args.address(CONFIG_BYTES + 32),
    deposit: {
      units: args.number(CONFIG_BYTES),
      validAfter: more.number(0),
      validBefore: more.number(32),
      salt: more.hash(64),
      signature: Buffer.from(more.bytes(96).slice(2), 'hex'),
    },
  };
}

export const withdrawCall = (config: ChannelConfig, units: bigint): Hex =>
  `0x${CALLS.withdraw}${configWords(config)}${word(units)}`;
export const finalizeCall = (config: ChannelConfig): Hex => `0x${CALLS.finalize}${configWords(config)}`;
