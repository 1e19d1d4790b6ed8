import type { PaymentRequirements, SettleResponse } from '@x402/core/types';
import { InMemoryClientChannelStorage } from '@x402/evm/batch-settlement/client';
import { decodePaymentResponseHeader, wrapFetchWithPayment } from '@x402/fetch';
import type { Hex } from 'viem';
import { challengeErrorOf } from '../../../cli/challenges.ts';
import { formatUsdc } from '../../../cli/money.ts';
import { createChannelClient } from '../../../cli/ways/channel.ts';
import type { Account, EmbeddedNetwork } from '../../../dev/network.ts';
import { balanceOf } from '../../../dev/tokens.ts';
import { formatUnits } from '../../../src/lib/units.ts';
import { untilChannelsOffered } from '../channels-offered.ts';
import { claimsOf, type MinedGas, minedGas } from './channel-gas.ts';

interface Purchase {
  readonly network: EmbeddedNetwork;
  /** Who buys. */
  readonly buyer: Account;
  readonly origin: string;
  /** The path that is bought, with its query. */
  readonly path: string;
  readonly calls: number;
  readonly say: (line: string) => void;
  readonly stopping: AbortSignal;
}

/**
 * Buys calls over a payment channel with the official client: one deposit, a voucher a call, and a refund of the rest. Prints what the seller's gas
 * costs for each call. Throws at the first broken promise: a status, a receipt, a balance, a missing claim.
 */
export async function buyByChannel(purchase: Purchase): Promise<void> {
  const { network, buyer, path, calls, say } = purchase;
  say(`\nBuying ${calls} calls over a payment channel, as another buyer, ${buyer.address}  GET ${path}`);
  const asked = await untilChannelsOffered(purchase.origin + path, purchase.stopping);
  const price = BigInt(asked.amount);
  say(`  the 402’s entry ${asked.scheme}: ${formatUsdc(price)} a call, from a deposit of ${depositText(asked)}`);
  const before = await balanceOf(network, buyer.address);
  const { pay, refund } = openClient(purchase, asked);

  const first = await pay();
  const deposit = await minedGas(network, first.transaction as Hex);
  say(`  call 1: 200, with a deposit of ${formatUsdc(BigInt(first.amount ?? 0))}, transaction ${first.transaction}`);
  const channelId = channelOf(first);
  say(`      into the channel ${channelId}`);
  const tookMs: number[] = [];
  for (let call = 2; call <= calls; call++) {
    const beganMs = performance.now();
    const receipt = await pay();
    tookMs.push(performance.now() - beganMs);
    expect(receipt.transaction === '', `call ${call} was settled by a transaction of its own`);
  }
  say(`  calls 2 to ${calls}: 200, by a voucher each, without a transaction; ${middle(tookMs).toFixed(0)} ms a call`);

  const charged = price * BigInt(calls);
  const receipt = await refund();
  say(`  refund: ${formatUsdc(BigInt(receipt.amount ?? 0))} to the buyer, transaction ${receipt.transaction}`);
  const claims = await claimsOf(network, channelId);
  const claimed = claims.reduce((sum, { amount }) => sum + amount, 0n);
  expect(claimed === charged, `the seller claimed ${formatUsdc(claimed)} instead of ${formatUsdc(charged)}`);
  for (const { amount, transaction } of claims) {
    const where = transaction === receipt.transaction ? 'in the same transaction' : `transaction ${transaction}`;
    say(`  claim: ${formatUsdc(amount)} for the seller, ${where}`);
  }
  const others = new Set([receipt.transaction as Hex, ...claims.map(({ transaction }) => transaction)]);
  const rest = await Promise.all([...others].map((hash) => minedGas(network, hash)));
  printCost(say, { deposit, rest, calls, price });
  const paid = before - (await balanceOf(network, buyer.address));
  expect(paid === charged, `the buyer paid ${formatUsdc(paid)} instead of ${formatUsdc(charged)}`);
  say(`  the buyer paid ${formatUsdc(paid)}: ${calls} times the price, and nothing else`);
}

function openClient({ network, buyer, origin, path, stopping }: Purchase, asked: PaymentRequirements) {
  const { client, scheme } = createChannelClient({
    privateKey: buyer.privateKey,
    network: `eip155:${network.chainId}`,
    asset: network.usdc,
    maxUnits: BigInt(asked.amount),
    maxDeposit: BigInt(String(asked.extra.minDeposit)),
    rpcUrl: network.rpcUrl,
    storage: new InMemoryClientChannelStorage(),
  });
  const fetchPaid = wrapFetchWithPayment(fetch, client);

  return {
    pay: async (): Promise<SettleResponse> => {
      const answer = await fetchPaid(origin + path, { signal: stopping });
      const body = await answer.text();
      const reason = challengeErrorOf(answer.headers) ?? body.slice(0, 300);
      expect(answer.status === 200, `a paid call answered ${answer.status} instead of 200: ${reason}`);
      const receipt = decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '');
      expect(receipt.extra?.chargedAmount === asked.amount, 'a receipt does not show the price as charged');
      return receipt;
    },
    refund: (): Promise<SettleResponse> => scheme.refund(origin + path),
  };
}

interface Cost {
  readonly deposit: MinedGas;
  /** Of the claim and the refund. */
  readonly rest: readonly MinedGas[];
  readonly calls: number;
  readonly price: bigint;
}

function printCost(say: (line: string) => void, { deposit, rest, calls, price }: Cost): void {
  const gas = rest.reduce((sum, one) => sum + one.gas, 0n);
  const wei = deposit.wei + rest.reduce((sum, one) => sum + one.wei, 0n);
  say(
    `  gas: ${deposit.gas} for the deposit, ${gas} for the claim and the refund: ${nativeText(wei)}, paid by the seller`,
  );
  say(`  a call costs the seller ${nativeText(wei / BigInt(calls))} of it, beside its price of ${formatUsdc(price)}`);
}

/** Native USDC, which has 18 decimals, to a millionth. */
const nativeText = (wei: bigint): string => `${formatUnits(wei / 10n ** 12n, 6)} USDC`;
const depositText = ({ extra }: PaymentRequirements): string => formatUsdc(BigInt(String(extra.minDeposit)));

function channelOf({ extra }: SettleResponse): Hex {
  const { channelId } = (extra?.channelState ?? {}) as { channelId?: Hex };
  if (!channelId) throw new Error('the receipt of the deposit names no channel');
  return channelId;
}

const middle = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
