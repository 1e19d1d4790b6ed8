import { toClientEvmSigner } from '@x402/evm';
import {
  type BatchSettlementDepositStrategyContext,
  BatchSettlementEvmScheme,
  type ClientChannelStorage,
  parseAnnouncedMinDeposit,
  readChannelBalanceAndTotalClaimed,
} from '@x402/evm/batch-settlement/client';
import { x402Client } from '@x402/fetch';
import { createPublicClient, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { formatUsdc } from './usdc.ts';

interface ChannelClientTerms {
  readonly privateKey: `0x${string}`;
  readonly network: `eip155:${string}`;
  readonly asset: string;
  /** The most that the client signs for in one call, in the asset's base units. */
  readonly maxUnits: bigint;
  /** The most that all deposits of this client take together, in base units. */
  readonly maxDeposit: bigint;
  /** Where the client reads the channel's balance. Null: it knows only what its storage holds, and cannot correct itself. */
  readonly rpcUrl: string | null;
  readonly storage: ClientChannelStorage;
}

/** The client would cut a deposit to this many times the call's price. Our own ceiling refuses a larger deposit instead. */
const UNCUT = Number.MAX_SAFE_INTEGER;
/** Calls that a deposit covers where the seller names no minimum, as the stock client has it. */
const CALLS_COVERED = 5n;

/**
 * The official client of payment channels, allowed to pay in one asset on one network. Its deposits are at most the ceiling, together: a larger one is
 * refused before it is signed. With an RPC endpoint the client corrects a wrong record of its channel by itself. `balanceOnChain` is what is deposited into
 * a channel, less what was paid back, in base units; it rejects without an endpoint.
 */
export function createChannelClient(terms: ChannelClientTerms) {
  const { privateKey, network, asset, maxUnits, maxDeposit, rpcUrl, storage } = terms;
  const account = privateKeyToAccount(privateKey);
  const signer = rpcUrl ? toClientEvmSigner(account, createPublicClient({ transport: http(rpcUrl) })) : account;
  let signed = 0n;

  function depositStrategy(context: BatchSettlementDepositStrategyContext): bigint {
    const wanted = depositOf(context);
    if (signed + wanted > maxDeposit) {
      const [before, more] = signed > 0n ? [` after ${formatUsdc(signed)}`, ' more'] : ['', ''];
      const ceiling = `the ceiling of ${formatUsdc(maxDeposit)} (--max-deposit)`;
      throw new Error(`a deposit of ${formatUsdc(wanted)}${before} is above ${ceiling}; nothing${more} was signed`);
    }
    signed += wanted;
    return wanted;
  }

  const depositPolicy = { depositMultiplier: UNCUT };
  const scheme = new BatchSettlementEvmScheme(signer, { storage, depositPolicy, depositStrategy });
  const client = new x402Client()
    .register(network, scheme)
    .setSpendControls({ allowedAssets: [{ network, asset, maxAmountPerPayment: maxUnits.toString() }] });
  const balanceOnChain = async (id: `0x${string}`): Promise<bigint> =>
    (await readChannelBalanceAndTotalClaimed(signer, id))[0];
  return { client, scheme, balanceOnChain };
}

/** What the channel needs now: the seller's minimum, or five calls without one, and more where the call itself costs more. */
function depositOf(context: BatchSettlementDepositStrategyContext): bigint {
  const [price, missing] = [BigInt(context.requestAmount), BigInt(context.minimumDepositAmount)];
  const usual = parseAnnouncedMinDeposit(context.paymentRequirements.extra?.minDeposit, price) ?? CALLS_COVERED * price;
  return missing > usual ? missing : usual;
}
