import { expect } from 'vitest';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { recoverAddress } from '../../../src/lib/secp256k1.ts';
import { balanceOf } from '../usdc/buyer.ts';
import { blockWithSuccessor, channelOnChain, eventsOf, sellerOnChain } from './chain-view.ts';
import { scheme } from './channel-payment.ts';
import type { Heard, KillBuyer } from './kill-buyer.ts';
import { type Ask, type ChannelLeft, readChannels, type Sales } from './kill-ledger.ts';

/** What holds whatever is killed. A failed check begins with the name of the promise that is broken. */
const PROMISES = {
  voucher: 'no voucher is acknowledged and lost',
  deposit: 'no deposit is made twice',
  ceiling: 'no buyer is charged above the ceiling that it has signed',
  failure: 'no buyer is charged for a call that failed',
  withdrawal: 'no withdrawal takes what was charged',
  sums: 'the ledger and the chain agree to the unit',
} as const;

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const sum = (all: readonly bigint[]): bigint => all.reduce((total, each) => total + each, 0n);

/** Every answer that the buyer received stands in the ledger of the dead service, with the same bytes. */
export function checkHeard(buyer: KillBuyer, answers: readonly Heard[], sales: Sales, context: string): void {
  const left = answers.map(({ attempt }) => sales(buyer.signer.id, attempt.max));
  const expected = answers.map(({ body }) => expect.objectContaining({ state: 'settled', reply: body }));
  expect(left, `${PROMISES.voucher}: ${context}`).toEqual(expected);
}

/** Checks the promises over all channels. `gone`: buyers that have taken their money back, and whose charges are claimed. */
export async function checkPromises(
  { network, ask }: { network: EmbeddedNetwork; ask: Ask },
  buyers: readonly KillBuyer[],
  gone: readonly KillBuyer[],
  context: string,
): Promise<void> {
  const block = await blockWithSuccessor(network);
  const channels = await readChannels(ask);
  const leftOf = ({ id }: KillBuyer): ChannelLeft => {
    const left = channels.get(id);
    if (!left) throw new Error(`the ledger has no row of a channel that has bought: ${context}`);
    return left;
  };
  const claimed = buyers.map((buyer) => checkBuyer(network, buyer, leftOf(buyer), block, context));
  for (const buyer of gone) checkLedger(buyer, leftOf(buyer), context);
  const total = sum(await Promise.all(claimed)) + sum(gone.map((buyer) => buyer.told().charged));
  const { claimed: recorded, unpaid } = await sellerOnChain(network, block);
  const paid = await balanceOf(network, network.seller, block);
  expect([recorded, paid + unpaid], `${PROMISES.sums}: ${context}`).toEqual([total, total]);
}

/** The ledger's row against what the buyer was told. */
function checkLedger(buyer: KillBuyer, { charged, sold, writtenOff }: ChannelLeft, context: string): void {
  const { charged: told, highest } = buyer.told();
  expect([charged, sold], `${PROMISES.failure}: ${context}`).toEqual([told, told]);
  expect(charged <= highest, `${PROMISES.ceiling}: ${context}`).toBe(true);
  expect(writtenOff, `${PROMISES.withdrawal}: ${context}`).toBe(0n);
}

/** One channel: told, in the ledger and on the chain. Returns what is claimed of it, in base units. */
async function checkBuyer(
  network: EmbeddedNetwork,
  buyer: KillBuyer,
  left: ChannelLeft,
  block: string,
  context: string,
): Promise<bigint> {
  checkLedger(buyer, left, context);
  const { deposited, highest } = buyer.told();
  const deposits = await eventsOf(network, 'Deposited', buyer.id);
  const made = Array(Number(deposited / buyer.depositSize)).fill(buyer.depositSize);
  expect(deposits, `${PROMISES.deposit}: ${context}`).toEqual(made);
  const refunded = sum(await eventsOf(network, 'Refunded', buyer.id));
  const { balance, claimed } = await channelOnChain(network, buyer.id, block);
  expect(claimed <= highest, `${PROMISES.ceiling}: ${context}`).toBe(true);
  const held = await balanceOf(network, buyer.address, block);
  expect([held, balance], `${PROMISES.sums}: ${context}`).toEqual([
    buyer.funds - deposited + refunded,
    deposited - refunded,
  ]);
  // Claimable is what the contract would pay for the ledger's voucher. The voucher is the buyer's own, over all charges.
  const { charged, writtenOff, signature } = left;
  const signer = signature && recoverAddress(scheme.voucherDigest(buyer.signer.id, charged), signature);
  expect(signer && bytesToHex(signer), `${PROMISES.sums}: ${context}`).toBe(buyer.address.toLowerCase());
  const claimable = least(charged, balance) - claimed;
  expect(charged, `${PROMISES.sums}: ${context}`).toBe(claimed + claimable + writtenOff);
  return claimed;
}
