import { z } from 'zod';
import { hexToBytes } from '../../../lib/hex.ts';
import type { ChannelConfig } from '../../../store/ports/channel-state.ts';
import type { Credential } from '../../protocol.ts';
import { PaymentRefused } from '../../refusal.ts';

/** A cumulative promise: up to `maxClaimableAmount` in all may be claimed from the channel. */
export interface Voucher {
  /** 32 bytes, as the client says: the check compares it with the id that the config gives. */
  readonly channelId: Uint8Array;
  /** Base units of the token. */
  readonly maxClaimableAmount: bigint;
  readonly signature: Uint8Array;
}

/** Money that the payer moves into the channel by an EIP-3009 authorization. */
export interface Deposit {
  /** Base units of the token. */
  readonly amount: bigint;
  /** Unix seconds. */
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  /** A uint256: the authorization's nonce is made of it and the channel's id. */
  readonly salt: bigint;
  readonly signature: Uint8Array;
}

interface Common {
  readonly config: ChannelConfig;
  readonly voucher: Voucher;
}

/** What a client presents on this rail. */
export type ChannelPayload =
  | (Common & { readonly kind: 'voucher' })
  | (Common & { readonly kind: 'deposit'; readonly deposit: Deposit })
  /** `amount` null asks for everything that is left. */
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
const word = z.string().regex(/^0x[0-9a-fA-F]{64}$/);
/** 65 bytes are a key's. A deposit of a wallet that is a contract may be signed with more, up to what one could reasonably need. */
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
  salt: word.transform(hexToBytes),
});
const voucher = z.object({ channelId: z.string(), maxClaimableAmount: uint128, signature });
const erc3009Authorization = z.object({
  validAfter: uint256,
  validBefore: uint256,
  salt: word.transform((text) => BigInt(text)),
  signature,
});

const common = z.object({ channelConfig, voucher });
const depositing = common.extend({
  deposit: z.object({ amount: uint128, authorization: z.object({ erc3009Authorization }) }),
});
const refunding = common.extend({ amount: uint128.optional() });

const PREFIX = 'invalid_batch_settlement_evm';

/** A reason of this scheme, as its specification spells it. */
export function reason(name: string): string {
  return `${PREFIX}_${name}`;
}

/** Reads a payload of the scheme; throws PaymentRefused with the scheme's reason. What only a facilitator sends (`claim`, `settle`) is no payment. */
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

/** `why` is the reason where the part that all kinds share is right. */
function parse<T>(schema: z.ZodType<T>, payload: Credential['payload'], why = 'payload_type'): T {
  const parsed = schema.safeParse(payload);
  if (parsed.success) return parsed.data;
  throw new PaymentRefused(reason(common.safeParse(payload).success ? why : 'payload_type'));
}

function commonOf({ channelConfig: config, voucher: given }: z.infer<typeof common>): Common {
  if (!word.safeParse(given.channelId).success) throw new PaymentRefused(reason('channel_id_invalid'));
  return { config, voucher: { ...given, channelId: hexToBytes(given.channelId) } };
}
