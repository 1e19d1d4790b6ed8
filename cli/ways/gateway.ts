import { z } from 'zod';
import { chainIdOf, type Entry, entriesIn, offerOf, planEntry, tokenExtra, usdcEntry } from './exact.ts';
import type { Asked, Fault, Offer, Plan, PlanFor } from './way.ts';

// USDC from a deposit in Circle's Gateway: the message of a plain transfer, signed for the Gateway's contract.
//
// The Gateway settles in batches and takes no authorization that ends within a week. So this is the one payment that is
// open for longer than ten minutes. It stays counted: the chain does not show whether the Gateway has used it.

/** Circle's contracts, by whether a network is a test network. No seller can name another one. */
const WALLETS = {
  main: '0x77777777Dcc4d5A8B6E418Fd04D8997ef11000eE',
  test: '0x0077777d7EBA4688BDeF3E311b846F25870A19B9',
};
/** Test networks of USDC. */
const TEST_NETWORKS = new Set([
  'eip155:5042002',
  'eip155:84532',
  'eip155:421614',
  'eip155:51',
  'eip155:11142220',
  'eip155:1328',
]);

/** What the Gateway asks for at the least, and a little for the way. In seconds. */
const GATEWAY_SECONDS = 604_900;
/** For clocks that differ, as Circle's own client has it. */
const EARLIER_SECONDS = 600;

const DOMAIN = { name: 'GatewayWalletBatched', version: '1' };
const schema = z.looseObject({
  ...usdcEntry,
  scheme: z.literal('exact'),
  extra: z.looseObject({
    ...tokenExtra,
    name: z.literal(DOMAIN.name),
    version: z.literal(DOMAIN.version),
    verifyingContract: usdcEntry.payTo,
  }),
});

/** The Gateway's contract on a network. A local network has another one, which `GATEWAY_WALLET_ADDRESS` names. */
export function gatewayOn(network: string, given: string | undefined): string {
  return given || (TEST_NETWORKS.has(network) ? WALLETS.test : WALLETS.main);
}

/** What a 402 asks for from a Gateway deposit. Entries for another contract than the Gateway's are faults. */
export function readGateway({ headers }: Asked, givenWallet: string | undefined): readonly Offer[] | Fault | null {
  const header = headers.get('payment-required');
  if (header === null) return null;
  const entries = entriesIn(header, schema);
  if (entries.length === 0) return { fault: "nothing on offer is paid from a deposit in Circle's Gateway" };
  const isCircles = ({ requirement: { network, extra } }: Entry) =>
    String(extra.verifyingContract).toLowerCase() === gatewayOn(network, givenWallet).toLowerCase();
  const own = entries.filter(isCircles);
  if (own.length === 0) return { fault: "the Gateway's entry names another contract than Circle's" };
  return own.map((entry) => ({ ...offerOf(entry), way: 'gateway', plan: (buyer) => planGateway(entry, buyer) }));
}

function planGateway(entry: Entry, { address, now }: PlanFor): Plan {
  const { network, extra } = entry.requirement;
  return planEntry(entry, {
    domain: { ...DOMAIN, chainId: chainIdOf(network), verifyingContract: String(extra.verifyingContract) },
    from: address ?? `0x${'0'.repeat(40)}`,
    validAfter: now - EARLIER_SECONDS,
    validBefore: now + GATEWAY_SECONDS,
  });
}
