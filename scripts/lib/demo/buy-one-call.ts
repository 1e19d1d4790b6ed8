import { setTimeout as delay } from 'node:timers/promises';
import type { PaymentRequirements } from '@x402/core/types';
import { decodePaymentResponseHeader, wrapFetchWithPayment } from '@x402/fetch';
import type { Hex } from 'viem';
import { challengeErrorOf } from '../../../cli/challenges.ts';
import { formatUsdc } from '../../../cli/money.ts';
import { plainTransfers } from '../../../cli/ways/exact.ts';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { balanceOf, transfersIn } from '../../../dev/tokens.ts';
import { createStockClient } from '../stock-client.ts';
import { type Exchange, recordFetch } from './record-fetch.ts';

interface Purchase {
  readonly network: EmbeddedNetwork;
  readonly origin: string;
  /** The path that is bought, and the path that fails, with their queries. */
  readonly calls: { readonly paid: string; readonly failing: string };
  readonly say: (line: string) => void;
  readonly stopping: AbortSignal;
}

/** The limit for which the buyer's client signs: ten times our highest price, and a thousandth of its balance. */
const MAX_UNITS = 10_000n;

/** How long the failing call is watched afterwards. A settlement that the service sent in spite of the failure would be mined by then. */
const WATCH_BLOCKS_MS = 1500;

/**
 * Buys one call with the official client, then calls a failing route, and prints each step.
 * Throws at the first broken promise: a status, a header, the transfer on the chain, a balance.
 */
export async function buyOneCall(purchase: Purchase): Promise<void> {
  await buy(purchase);
  await failToBuy(purchase);
}

async function buy({ network, origin, calls, say, stopping }: Purchase): Promise<void> {
  const before = await balances(network);
  say(`\nBuying  GET ${calls.paid}`);
  printBalance(say, 'before', before);
  const { exchanges, answer, requirement } = await present(network, `${origin}${calls.paid}`, stopping);
  printExchange(say, exchanges, requirement);
  const body = await answer.text();
  const reason = challengeErrorOf(answer.headers) ?? body.slice(0, 300);
  expect(answer.status === 200, `the paid call answered ${answer.status} instead of 200: ${reason}`);
  say(`  ← 200  ${body}`);

  const receipt = decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '');
  expect(receipt.success, 'the receipt in PAYMENT-RESPONSE does not say success');
  say(`  PAYMENT-RESPONSE: transaction ${receipt.transaction}`);
  const price = BigInt(requirement.amount);
  const transfers = await transfersIn(network, receipt.transaction as Hex);
  const paid = transfers.filter(
    ({ from, to }) => from === lower(network.buyer.address) && to === lower(network.seller),
  );
  expect(
    paid.length === 1 && paid[0]?.value === price,
    `the transaction does not hold exactly one transfer of ${formatUsdc(price)} from the buyer to the seller`,
  );
  say(`  on chain: one USDC transfer of ${formatUsdc(price)} from the buyer to the seller`);

  const after = await balances(network);
  printBalance(say, 'after', after);
  expect(before.buyer - after.buyer === price, 'the buyer’s balance did not fall by exactly the price');
  expect(fromOthers(after) - fromOthers(before) === price, 'the seller’s balance did not rise by exactly the price');
}

async function failToBuy({ network, origin, calls, say, stopping }: Purchase): Promise<void> {
  const before = await balances(network);
  say(`\nPaying for a call that fails on purpose  GET ${calls.failing}`);
  const { exchanges, answer, requirement } = await present(network, `${origin}${calls.failing}`, stopping);
  printExchange(say, exchanges, requirement);
  const body = await answer.text();
  expect(answer.status === 500, `the failing call answered ${answer.status} instead of 500: ${body.slice(0, 300)}`);
  say(`  ← 500  ${body}`);
  await delay(WATCH_BLOCKS_MS, undefined, { signal: stopping });
  const after = await balances(network);
  printBalance(say, 'after', after);
  expect(
    after.buyer === before.buyer && fromOthers(after) === fromOthers(before),
    'a call that failed moved money, which must never happen',
  );
  say('  nothing moved: a failing call is never charged');
}

/** One call with the official client: an unpaid request, its 402, a signature, the paid request. */
async function present(network: EmbeddedNetwork, url: string, signal: AbortSignal) {
  const { fetch: recorded, exchanges } = recordFetch();
  const terms = { privateKey: network.buyer.privateKey, asset: network.usdc, maxUnits: MAX_UNITS };
  const client = createStockClient({ ...terms, network: `eip155:${network.chainId}` });
  const answer = await wrapFetchWithPayment(recorded, client)(url, { signal });
  const [first] = exchanges;
  expect(first?.status === 402, `the unpaid call answered ${first?.status} instead of 402`);
  const header = first?.responseHeaders.get('payment-required') ?? null;
  if (header === null) throw new Error('the 402 has no PAYMENT-REQUIRED header');
  const [entry] = plainTransfers(header);
  if (!entry) throw new Error('nothing on offer is a plain USDC transfer');
  return { exchanges, answer, requirement: entry.requirement };
}

function printExchange(say: (line: string) => void, exchanges: readonly Exchange[], asked: PaymentRequirements): void {
  say('  → GET without a payment');
  say(`  ← ${exchanges[0]?.status}  PAYMENT-REQUIRED says:`);
  for (const line of JSON.stringify(asked, null, 2).split('\n')) say(`      ${line}`);
  const signature = exchanges[1]?.requestHeaders.get('payment-signature') ?? null;
  expect(signature !== null, 'the official client did not repeat the call with a payment');
  const { payload } = JSON.parse(Buffer.from(signature ?? '', 'base64').toString('utf8'));
  say('  → the same GET with PAYMENT-SIGNATURE, an authorization that the buyer signed and that costs no gas:');
  for (const line of JSON.stringify(payload.authorization, null, 2).split('\n')) say(`      ${line}`);
}

interface Balances {
  readonly buyer: bigint;
  readonly seller: bigint;
  readonly selfTester: bigint;
}

/** All balances at one block. */
async function balances(network: EmbeddedNetwork): Promise<Balances> {
  const block = await network.rpc<Hex>('eth_blockNumber');
  const { buyer, seller, selfTester } = network;
  return {
    buyer: await balanceOf(network, buyer.address, block),
    seller: await balanceOf(network, seller, block),
    selfTester: await balanceOf(network, selfTester.address, block),
  };
}

/** The seller's balance without the payments of the service's own self-test, which may buy at any time and pays only the seller. */
function fromOthers({ seller, selfTester }: Balances): bigint {
  return seller + selfTester;
}

function printBalance(say: (line: string) => void, when: string, { buyer }: Balances): void {
  say(`  the buyer’s balance ${when}: ${formatUsdc(buyer)}`);
}

function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}

function lower(address: Hex): string {
  return address.toLowerCase();
}
