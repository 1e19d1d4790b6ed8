import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { until } from '../service/workers.ts';
import { balanceOf, isPending, newBuyer } from '../usdc/buyer.ts';
import { requirementOf, signAuthorization } from '../usdc/payments.ts';
import type { RailUnderTest } from './rail-fixture.ts';
import { FUNDS } from './signed-rail.ts';
import { usdcPayment } from './usdc-payment.ts';

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

interface Log {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

/** What both settlers of `usdc-exact` have in common: payers with USDC on the chain, blocks that can wait, and logs as evidence. */
export function openExact(network: EmbeddedNetwork): Pick<RailUnderTest, 'pay' | 'hang' | 'evidenceOf'> {
  return {
    pay: async ({ headers }, wrong) => {
      const { address, privateKey } = await newBuyer(network, wrong === 'without the money' ? 0n : FUNDS);
      const requirement = requirementOf(headers);
      return usdcPayment(
        { requirement, wrong, sign: (changes) => signAuthorization(privateKey, requirement, changes) },
        {
          balance: () => balanceOf(network, address),
          add: async (units) => {
            // Between two blocks of its own: written storage shows in the newest block too, and the relayer bans a payer that held the price at the block
            // in which its payment moved nothing.
            await network.mine();
            await network.fundUsdc(address, units);
            await network.mine();
          },
        },
      );
    },
    hang: async () => {
      await network.pauseMining();
      return {
        arrived: ({ id }) => until('its settlement waits for a block', () => isPending(network, id)),
        heal: network.resumeMining,
      };
    },
    evidenceOf: async ({ transaction }) => {
      const receipt = await network.rpc<{ logs: Log[] } | null>('eth_getTransactionReceipt', [transaction]);
      const seller = `0x${network.seller.slice(2).toLowerCase().padStart(64, '0')}`;
      return (receipt?.logs ?? [])
        .filter(({ address, topics }) => address === network.usdc && topics[0] === TRANSFER && topics[2] === seller)
        .reduce((sum, { data }) => sum + BigInt(data), 0n);
    },
  };
}
