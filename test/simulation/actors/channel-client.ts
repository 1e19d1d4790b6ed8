import type { Random } from '../engine/random.ts';
import type { Reported, Requirement, Voucher } from '../record/presentation.ts';
import { WITHDRAW_DELAY_SECONDS } from '../service/environment.ts';
import { type ChannelConfig, depositTerms, type SignedDeposit } from '../world/chain/channel-terms.ts';
import { type Account, type Hex, signDigest, toHex } from '../world/chain/keys.ts';
import { receiveDigest, USDC } from '../world/chain/token.ts';
import type { Payer } from '../world/payers.ts';
import type { World } from '../world/world.ts';

/** A channel that a payer has, and the key that signs its vouchers. */
export interface ClientChannel {
  readonly payer: Payer;
  readonly signer: Account;
  readonly config: ChannelConfig;
  readonly channelId: Hex;
}

/** What one device remembers of a channel, as the stock client does. */
export interface Device {
  /** Charged so far, in base units. */
  charged: bigint;
  /** What it believes to be in the channel. */
  balance: bigint;
}

/** Signs what the stock client signs, and learns from answers what it learns. */
export function createChannelClient({ chain, accounts, scheduler }: World, random: Random) {
  const terms = chain.channelTerms;

  return {
    /** A channel made out to the seller. `authorizer` is the address whose key signs vouchers. */
    channelFor(payer: Payer, authorizer: Hex): ClientChannel {
      const config: ChannelConfig = {
        payer: payer.address,
        payerAuthorizer: authorizer,
        receiver: accounts.seller.address,
        receiverAuthorizer: accounts.authorizer.address,
        token: USDC,
        withdrawDelay: WITHDRAW_DELAY_SECONDS,
        salt: toHex(random.bytes(32)),
      };
      return { payer, signer: payer.account, config, channelId: terms.channelId(config) };
    },
    /** A voucher up to `max` in all. */
    voucher: ({ config, channelId, signer }: ClientChannel, kind: Voucher['kind'], max: bigint): Voucher => ({
      kind,
      config,
      channelId,
      max,
      signature: signDigest(terms.voucherDigest(channelId, max), signer),
    }),
    /** Money for the channel, good for so many seconds. */
    deposit({ config, channelId, payer }: ClientChannel, units: bigint, validFor: number): SignedDeposit {
      const now = BigInt(Math.floor(scheduler.nowMs() / 1000));
      const made = { units, validAfter: 0n, validBefore: now + BigInt(validFor), salt: toHex(random.bytes(32)) };
      const digest = receiveDigest(chain.token.domain, depositTerms(channelId, config, made));
      return { ...made, signature: signDigest(digest, payer.account) };
    },
    /** Takes from an answer what the stock client takes: the charges of a receipt, or of a correction. */
    learn(device: Device, reported: Reported): 'paid' | 'corrected' | 'nothing' {
      const paid = stateIn(reported.receiptExtra);
      if (reported.status === 200 && paid) {
        Object.assign(device, paid);
        return 'paid';
      }
      const entry = reported.status === 402 ? channelEntry(reported.offer?.accepts() ?? []) : undefined;
      const told = entry && stateIn(entry.extra);
      if (!told) return 'nothing';
      Object.assign(device, told);
      return 'corrected';
    },
  };
}

/** The offer of payment channels in a 402. */
export const channelEntry = (accepts: readonly Requirement[]): Requirement | undefined =>
  accepts.find(({ scheme }) => scheme === 'batch-settlement');

function stateIn({ channelState }: Readonly<Record<string, unknown>>): Device | null {
  const { chargedCumulativeAmount: charged, balance } = (channelState ?? {}) as Record<string, unknown>;
  return typeof charged === 'string' && typeof balance === 'string'
    ? { charged: BigInt(charged), balance: BigInt(balance) }
    : null;
}

/** A payload as the stock client writes it. */
export function channelPayload(voucher: Voucher, deposit: SignedDeposit | null, units: bigint | null): object {
  const { kind, config, channelId, max, signature } = voucher;
  const signed = { channelId, maxClaimableAmount: String(max), signature: toHex(signature) };
  const erc3009Authorization = deposit && {
    validAfter: String(deposit.validAfter),
    validBefore: String(deposit.validBefore),
    salt: deposit.salt,
    signature: toHex(deposit.signature),
  };
  return {
    type: kind,
    channelConfig: config,
    voucher: signed,
    ...(deposit && { deposit: { amount: String(deposit.units), authorization: { erc3009Authorization } } }),
    ...(kind === 'refund' && units !== null && { amount: String(units) }),
  };
}
