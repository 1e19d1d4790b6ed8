import { hexToBytes } from '../../../lib/hex.ts';
import { keccak256 } from '../../../lib/secp256k1.ts';
import { setNewest } from '../../../lib/set-newest.ts';
import type { ChannelConfig } from '../../../store/ports/channel-state.ts';
import { addressWord, domainSeparator, typedDigest, typeHash, word } from '../../usdc/token.ts';

/** The scheme's settlement contract. Its address is compiled into every client, so it is the same on all chains. */
export const SETTLEMENT: `0x${string}` = '0x4020074e9df2ce1dee5a9c1b5c3f541d02a10003';
/** The same address, as bytes. */
export const SETTLEMENT_BYTES = hexToBytes(SETTLEMENT);
/** What collects deposits by EIP-3009: the recipient that a depositor signs for. The same on all chains. */
export const DEPOSIT_COLLECTOR: `0x${string}` = '0x4020806089470a89826cb9fb1f4059150b550004';

/** What one row of a claim records. Amounts in base units of the token. */
export interface ClaimEntry {
  readonly channelId: Uint8Array;
  /** What the payer signed for in all. */
  readonly maxClaimableAmount: bigint;
  /** What is recorded in all once the claim is mined. */
  readonly totalClaimed: bigint;
}

const DOMAIN = { name: 'x402 Batch Settlement', version: '1' } as const;
const CONFIG_TYPEHASH = typeHash(
  'ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)',
);
const VOUCHER_TYPEHASH = typeHash('Voucher(bytes32 channelId,uint128 maxClaimableAmount)');
const REFUND_TYPEHASH = typeHash('Refund(bytes32 channelId,uint256 nonce,uint128 amount)');
const ENTRY = 'ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)';
const ENTRY_TYPEHASH = typeHash(ENTRY);
const BATCH_TYPEHASH = typeHash(`ClaimBatch(ClaimEntry[] claims)${ENTRY}`);
/** Channel ids that are kept, so that a voucher of a known channel costs two hashes less. */
const MOST_IDS = 20_000;

/** The scheme's digests on one chain, all 32 bytes. */
export function createScheme(chainId: number) {
  const separator = domainSeparator(DOMAIN.name, DOMAIN.version, chainId, SETTLEMENT_BYTES);
  const ids = new Map<string, Uint8Array>();

  return {
    /** The id is the typed digest of the config, not its bare hash, so it is bound to the chain and the contract. */
    channelId(config: ChannelConfig): Uint8Array {
      const struct = structOf(config);
      const key = Buffer.concat(struct).toString('latin1');
      const id = ids.get(key) ?? typedDigest(separator, [CONFIG_TYPEHASH, ...struct]);
      setNewest(ids, key, id, MOST_IDS);
      return id;
    },
    /** What the payer's key signs: that up to this much in all may be claimed from the channel. */
    voucherDigest: (channelId: Uint8Array, maxClaimableAmount: bigint): Uint8Array =>
      typedDigest(separator, [VOUCHER_TYPEHASH, channelId, word(maxClaimableAmount)]),
    /** What the receiver's authorizer signs for a refund; `nonce` is the contract's `refundNonce` of the channel. */
    refundDigest: (channelId: Uint8Array, nonce: bigint, amount: bigint): Uint8Array =>
      typedDigest(separator, [REFUND_TYPEHASH, channelId, word(nonce), word(amount)]),
    /** What the receiver's authorizer signs for a claim of these rows, in their order. */
    claimDigest(entries: readonly ClaimEntry[]): Uint8Array {
      const hashes = entries.map(({ channelId, maxClaimableAmount, totalClaimed }) =>
        keccak256(Buffer.concat([ENTRY_TYPEHASH, channelId, word(maxClaimableAmount), word(totalClaimed)])),
      );
      return typedDigest(separator, [BATCH_TYPEHASH, keccak256(Buffer.concat(hashes))]);
    },
  };
}

export type Scheme = ReturnType<typeof createScheme>;

/** The nonce of the EIP-3009 authorization that pays into a channel. It binds the money to that channel. `salt` is a uint256 of the depositor. */
export function depositNonce(channelId: Uint8Array, salt: bigint): Uint8Array {
  return keccak256(Buffer.concat([channelId, word(salt)]));
}

/** The members of the contract's struct in its order, each as 32 bytes. */
function structOf(config: ChannelConfig): Uint8Array[] {
  const { payer, payerAuthorizer, receiver, receiverAuthorizer, token, withdrawDelay, salt } = config;
  const addresses = [payer, payerAuthorizer, receiver, receiverAuthorizer, token].map(addressWord);
  return [...addresses, word(BigInt(withdrawDelay)), salt];
}
