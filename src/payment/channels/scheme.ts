import type { PaymentRequirements } from '@x402/core/types';
import { z } from 'zod';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { boundedMap } from '../../lib/limits/count.ts';
import { keccak256, recoverAddress } from '../../lib/secp256k1.ts';
import type { ChannelConfig } from '../../store/ports/channel-state.ts';
import type { Accepted, Credential } from '../protocol.ts';
import { PaymentRefused, type RefusalSentences } from '../refusal.ts';
import { checkAccepted } from '../usdc/authorization.ts';
import { addressWord, domainSeparator, typedDigest, typeHash, word } from '../usdc/token.ts';

// The scheme `batch-settlement`: its contracts, ids and digests, what a client presents, the check of a voucher that
// needs neither chain nor ledger, and the scheme's reasons in sentences.

/** The settlement contract. Compiled into every client, so it is the same on all chains. */
export const SETTLEMENT: `0x${string}` = '0x4020074e9df2ce1dee5a9c1b5c3f541d02a10003';
export const SETTLEMENT_BYTES = hexToBytes(SETTLEMENT);
/** Collects deposits by EIP-3009: the recipient that a depositor signs for. The same on all chains. */
export const DEPOSIT_COLLECTOR: `0x${string}` = '0x4020806089470a89826cb9fb1f4059150b550004';

/** A claim's row, in base units: what the payer signed for, and what is recorded by then, both in all. */
interface ClaimEntry {
  readonly channelId: Uint8Array;
  readonly maxClaimableAmount: bigint;
  readonly totalClaimed: bigint;
}

const DOMAIN = { name: 'x402 Batch Settlement', version: '1' } as const;
const CONFIG_TYPEHASH = typeHash(
  'ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,' +
    'address token,uint40 withdrawDelay,bytes32 salt)',
);
const VOUCHER_TYPEHASH = typeHash('Voucher(bytes32 channelId,uint128 maxClaimableAmount)');
const REFUND_TYPEHASH = typeHash('Refund(bytes32 channelId,uint256 nonce,uint128 amount)');
const ENTRY = 'ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)';
const ENTRY_TYPEHASH = typeHash(ENTRY);
const BATCH_TYPEHASH = typeHash(`ClaimBatch(ClaimEntry[] claims)${ENTRY}`);
/** Channel ids that are kept: a voucher of a known channel costs two hashes less. */
const MOST_IDS = 20_000;

/** The digests on one chain, 32 bytes each. */
export function createScheme(chainId: number) {
  const separator = domainSeparator(DOMAIN.name, DOMAIN.version, chainId, SETTLEMENT_BYTES);
  const ids = boundedMap<string, Uint8Array>(MOST_IDS);

  return {
    /** The typed digest of the config, not its bare hash: so it is bound to the chain and the contract. */
    channelId(config: ChannelConfig): Uint8Array {
      const struct = structOf(config);
      const key = Buffer.concat(struct).toString('latin1');
      const id = ids.peek(key) ?? typedDigest(separator, [CONFIG_TYPEHASH, ...struct]);
      ids.set(key, id);
      return id;
    },
    /** Signed by the payer's key: up to this much in all may be claimed from the channel. */
    voucherDigest: (channelId: Uint8Array, maxClaimableAmount: bigint): Uint8Array =>
      typedDigest(separator, [VOUCHER_TYPEHASH, channelId, word(maxClaimableAmount)]),
    /** Signed by the receiver's authorizer for a refund; `nonce`: the channel's `refundNonce`. */
    refundDigest: (channelId: Uint8Array, nonce: bigint, amount: bigint): Uint8Array =>
      typedDigest(separator, [REFUND_TYPEHASH, channelId, word(nonce), word(amount)]),
    /** Signed by the receiver's authorizer for a claim of these rows, in their order. */
    claimDigest(entries: readonly ClaimEntry[]): Uint8Array {
      const hashes = entries.map(({ channelId, maxClaimableAmount, totalClaimed }) =>
        keccak256(Buffer.concat([ENTRY_TYPEHASH, channelId, word(maxClaimableAmount), word(totalClaimed)])),
      );
      return typedDigest(separator, [BATCH_TYPEHASH, keccak256(Buffer.concat(hashes))]);
    },
  };
}

export type Scheme = ReturnType<typeof createScheme>;

/** The authorization's nonce binds a deposit to its channel. `salt`: a uint256 of the depositor. */
export function depositNonce(channelId: Uint8Array, salt: bigint): Uint8Array {
  return keccak256(Buffer.concat([channelId, word(salt)]));
}

/** The contract's struct, in its order, each member as 32 bytes. */
function structOf(config: ChannelConfig): Uint8Array[] {
  const { payer, payerAuthorizer, receiver, receiverAuthorizer, token, withdrawDelay, salt } = config;
  const addresses = [payer, payerAuthorizer, receiver, receiverAuthorizer, token].map(addressWord);
  return [...addresses, word(BigInt(withdrawDelay)), salt];
}

/** Cumulative, in base units. The id is the client's word; the check compares it with the config's. */
interface Voucher {
  readonly channelId: Uint8Array;
  readonly maxClaimableAmount: bigint;
  readonly signature: Uint8Array;
}

/** By an EIP-3009 authorization: base units, Unix seconds, and a uint256 salt of which its nonce is made. */
interface Deposit {
  readonly amount: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly salt: bigint;
  readonly signature: Uint8Array;
}

interface Common {
  readonly config: ChannelConfig;
  readonly voucher: Voucher;
}

export type ChannelPayload =
  | (Common & { readonly kind: 'voucher' })
  | (Common & { readonly kind: 'deposit'; readonly deposit: Deposit })
  /** Null asks for all that is left. */
  | (Common & { readonly kind: 'refund'; readonly amount: bigint | null });

/** The ledger's largest amount: 9 trillion USDC. The contract takes more. */
const MOST_AMOUNT = 2n ** 63n - 1n;
const MOST_UINT256 = 2n ** 256n - 1n;
/** BigInt takes `""`, `"0x10"` and `" 5 "` as well: only digits are a number here. */
const digits = (most: number, limit: bigint) =>
  z
    .string()
    .regex(new RegExp(`^\\d{1,${most}}$`))
    .transform(BigInt)
    .refine((value) => value <= limit);
const uint128 = digits(39, MOST_AMOUNT);
const uint256 = digits(78, MOST_UINT256);
const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  .transform(hexToBytes);
const bytes32 = z.string().regex(/^0x[0-9a-fA-F]{64}$/);
/** 65 bytes are a key's. A contract wallet may sign a deposit with more, up to what one could reasonably need. */
const signature = z
  .string()
  .regex(/^0x(?:[0-9a-fA-F]{2}){1,4096}$/)
  .transform(hexToBytes);

const channelConfig = z.object({
  payer: address,
  payerAuthorizer: address,
  receiver: address,
  receiverAuthorizer: address,
  token: address,
  // A uint40 in the contract.
  withdrawDelay: z
    .int()
    .min(0)
    .max(2 ** 40 - 1),
  salt: bytes32.transform(hexToBytes),
});
const voucher = z.object({ channelId: z.string(), maxClaimableAmount: uint128, signature });
const erc3009Authorization = z.object({
  validAfter: uint256,
  validBefore: uint256,
  salt: bytes32.transform((text) => BigInt(text)),
  signature,
});

const common = z.object({ channelConfig, voucher });
const depositing = common.extend({
  deposit: z.object({ amount: uint128, authorization: z.object({ erc3009Authorization }) }),
});
const refunding = common.extend({ amount: uint128.optional() });

const PREFIX = 'invalid_batch_settlement_evm';

/** As the scheme's specification spells it. */
export function reason(name: string): string {
  return `${PREFIX}_${name}`;
}

/** Throws PaymentRefused with the scheme's reason. What only a facilitator sends (`claim`, `settle`) is no payment. */
export function readPayload(payload: Credential['payload']): ChannelPayload {
  switch (payload.type) {
    case 'voucher':
      return { kind: 'voucher', ...commonOf(parse(common, payload)) };
    case 'deposit': {
      const { deposit, ...rest } = parse(depositing, payload, 'erc3009_authorization_required');
      const { erc3009Authorization: authorization } = deposit.authorization;
      return { kind: 'deposit', ...commonOf(rest), deposit: { amount: deposit.amount, ...authorization } };
    }
    case 'refund': {
      const { amount, ...rest } = parse(refunding, payload, 'refund_payload');
      return { kind: 'refund', ...commonOf(rest), amount: amount ?? null };
    }
    default:
      throw new PaymentRefused(reason('payload_type'));
  }
}

/** `why`: the reason where the part that all kinds share is right. */
function parse<T>(schema: z.ZodType<T>, payload: Credential['payload'], why = 'payload_type'): T {
  const parsed = schema.safeParse(payload);
  if (parsed.success) return parsed.data;
  throw new PaymentRefused(reason(common.safeParse(payload).success ? why : 'payload_type'));
}

function commonOf({ channelConfig: config, voucher: given }: z.infer<typeof common>): Common {
  if (!bytes32.safeParse(given.channelId).success) throw new PaymentRefused(reason('channel_id_invalid'));
  return { config, voucher: { ...given, channelId: hexToBytes(given.channelId) } };
}

/** In hex. Signs the vouchers. Failures and refunds count for it: any account can fund a channel in another's name. */
export const signerOf = ({ config }: ChannelPayload): string => bytesToHex(config.payerAuthorizer);

/** What a channel must be made out to so that it pays here. Addresses have 20 bytes; the delay is in seconds. */
export interface ChannelTerms {
  readonly receiver: Uint8Array;
  readonly receiverAuthorizer: Uint8Array;
  readonly token: Uint8Array;
  readonly withdrawDelay: number;
}

/** Throws PaymentRefused unless the terms that the buyer claims to accept are this requirement's. */
export function checkAcceptedTerms(accepted: Accepted, requirement: PaymentRequirements): void {
  if (accepted.network !== requirement.network) throw new PaymentRefused(reason('network_mismatch'));
  checkAccepted(accepted, requirement);
}

const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

/** The contract's bounds, in seconds (MIN_WITHDRAW_DELAY, MAX_WITHDRAW_DELAY). */
const DELAYS = { least: 900, most: 2_592_000 };

/**
 * Returns the channel's id. The first rule that fails is the reason, by the scheme's name. The signature must have the
 * one form that the contract takes (65 bytes, v 27 or 28, a low s): else we would serve what cannot be claimed. A
 * channel without a key of its own fails, as its payer may be a contract that changes its mind. The signature comes
 * before the rules on the state: those answers repeat the last voucher.
 */
export function checkVoucher({ config, voucher }: ChannelPayload, terms: ChannelTerms, scheme: Scheme): Uint8Array {
  const channelId = scheme.channelId(config);
  if (!same(channelId, voucher.channelId)) throw new PaymentRefused(reason('channel_id_mismatch'));
  checkTerms(config, terms);
  if (!isSigned(channelId, voucher, config, scheme)) throw new PaymentRefused(reason('voucher_signature'));
  return channelId;
}

function checkTerms(config: ChannelConfig, terms: ChannelTerms): void {
  const { withdrawDelay: delay } = config;
  if (!same(config.receiver, terms.receiver)) throw new PaymentRefused(reason('receiver_mismatch'));
  if (!same(config.receiverAuthorizer, terms.receiverAuthorizer))
    throw new PaymentRefused(reason('receiver_authorizer_mismatch'));
  if (!same(config.token, terms.token)) throw new PaymentRefused(reason('token_mismatch'));
  if (delay < DELAYS.least || delay > DELAYS.most) throw new PaymentRefused(reason('withdraw_delay_out_of_range'));
  if (delay !== terms.withdrawDelay) throw new PaymentRefused(reason('withdraw_delay_mismatch'));
}

function isSigned(
  channelId: Uint8Array,
  voucher: Voucher,
  { payerAuthorizer }: ChannelConfig,
  scheme: Scheme,
): boolean {
  const digest = scheme.voucherDigest(channelId, voucher.maxClaimableAmount);
  const signer = recoverAddress(digest, voucher.signature);
  // A recovered address is never zero, so a channel without a key ends here.
  return signer !== null && same(signer, payerAuthorizer);
}

/** The rail's name in the reports of the process that settles. */
export const RAIL = 'usdc-channels';

/** The scheme's name in a requirement. */
export const SCHEME = 'batch-settlement';

const STALE = 'Sign the next voucher over the charges in extra.channelState of the entry, plus the price.';
const CONFIG = 'Open a channel with the terms of the entry.';

const SENTENCES: RefusalSentences = {
  payload_type:
    'The payload is no voucher, deposit or refund of this scheme. Make it with a client of batch-settlement.',
  erc3009_authorization_required:
    'The deposit holds no readable EIP-3009 authorization. Put it into deposit.authorization.erc3009Authorization.',
  refund_payload: 'The refund cannot be read. Its amount is a decimal string of base units, or left out.',
  network_mismatch: 'The payment is for another network. Sign for the network of the entry.',
  channel_id_invalid: 'The voucher’s channelId is no 32 bytes in hex. Take the id of the channel’s config.',
  channel_id_mismatch: 'The voucher names another channel than its channelConfig. Sign for the id of this config.',
  voucher_signature:
    'The voucher’s signature is not the payer’s. Sign it with the key that the channel’s config names.',
  receive_authorization_signature:
    'The deposit’s signature is not the payer’s. Sign the EIP-3009 ReceiveWithAuthorization in the token’s domain.',
  receiver_mismatch: `The channel pays another receiver. ${CONFIG}`,
  receiver_authorizer_mismatch: `The channel names another receiverAuthorizer. ${CONFIG}`,
  token_mismatch: `The channel holds another token. ${CONFIG}`,
  withdraw_delay_out_of_range: `The channel’s withdrawDelay is not possible in this scheme. ${CONFIG}`,
  withdraw_delay_mismatch: `The channel has another withdrawDelay. ${CONFIG}`,
  channel_not_found: 'There is no money in this channel. Make a deposit with the next call.',
  channel_busy: 'Another request or deposit uses this channel now. Present the same payment again in a moment.',
  cumulative_amount_mismatch: `The voucher was signed over other charges than the channel’s. ${STALE}`,
  cumulative_below_claimed: `The voucher is for no more than is claimed from the channel. ${STALE}`,
  cumulative_exceeds_balance: 'The channel holds too little for this call. Make another deposit with the next call.',
  deposit_below_min_deposit: 'The deposit is too small. Deposit at least extra.minDeposit of the entry.',
  deposit_simulation_failed: 'The payer’s account would not let the deposit move the money. Check the wallet.',
  deposit_transaction_failed:
    'The deposit has moved no money, or its authorization is used. ' +
    'Present the same payment again before you sign another deposit.',
  insufficient_balance:
    'The payer holds too little USDC for the deposit. Fund the wallet, or pay by another entry of accepts.',
  payload_authorization_valid_before:
    'The deposit’s authorization has expired, or is not valid for as long as the entry says. Sign a new one.',
  payload_authorization_valid_after:
    'The deposit’s authorization is not valid yet. Sign it with a validAfter in the past.',
  refund_no_balance: 'Nothing that is worth its gas can go back from this channel. Withdraw from the contract instead.',
  refund_amount_invalid: 'The refund is too small, or more than is left. Leave the amount out to get all that is left.',
  refund_transaction_failed: 'The refund moved no money. Ask for it again later, or withdraw from the contract.',
};

/** A sentence for each of the scheme's reasons, for people. */
export const CHANNEL_REFUSALS: RefusalSentences = Object.fromEntries(
  Object.entries(SENTENCES).map(([name, sentence]) => [reason(name), sentence]),
);
