import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { keccak256 } from '../../../src/lib/secp256k1.ts';
import { depositPayment } from '../../../src/payment/channels/deposit.ts';
import { readPayload } from '../../../src/payment/channels/scheme.ts';
import { word } from '../../../src/payment/usdc/token.ts';
import { eventsOf } from '../channels/chain-view.ts';
import { channelBuyer, channelEntry, findChannelEntry } from '../channels/channel-buyer.ts';
import { channelOnChain, chargedAndClaimed } from '../channels/channel-reads.ts';
import type { Answer } from '../service/service.ts';
import { until } from '../service/workers.ts';
import { balanceOf, decoded, newBuyer } from '../usdc/buyer.ts';
import { newOutsider } from '../usdc/outsider.ts';
import { headerOf, type Requirement } from '../usdc/payments.ts';
import type { RailFixture, RailPayment, RailUnderTest, Receipt, Wrong } from './rail-fixture.ts';
import { FUNDS, signedRail } from './signed-rail.ts';

/** A deposit of a fixture, in base units: more than a call costs, and half of what a payer holds. */
const DEPOSIT = FUNDS / 2n;

type Header = { accepted: Requirement; payload: Record<string, unknown> };
type Shown = { channelId: string; chargedCumulativeAmount: string };

/** Functions of the contract by which the relayer moves a deposit and claims vouchers. */
const [DEPOSITS, CLAIMS] = ['140f1e75', 'e43ce1f2'];

/** What both proofs have in common: claims soon after the sale, so that the chain shows what a sale has cost. `settles`: the call that a stop holds up. */
function openChannels(
  network: EmbeddedNetwork,
  settles: string,
): Pick<RailUnderTest, 'env' | 'secrets' | 'hang' | 'close'> {
  const authorizer = network.authorizer.privateKey;
  return {
    env: {
      CHANNELS: 'on',
      CHANNELS_AUTHORIZER_KEY: authorizer,
      CHANNELS_MIN_DEPOSIT_USDC: '0.05',
      CHANNELS_CLAIM_FROM_USDC: '0.000001',
      // All presentations of one voucher at once get its answer.
      REDELIVERY_MAX: '64',
    },
    secrets: [network.relayer.privateKey.slice(2), authorizer.slice(2)],
    hang: async () => {
      await network.pauseMining();
      return {
        arrived: () =>
          until('the call waits for a block', async () => {
            const { pending } = await network.rpc<{ pending: object }>('txpool_content');
            return JSON.stringify(pending).includes(settles);
          }),
        heal: network.resumeMining,
      };
    },
    close: async () => {},
  };
}

/** A payer with a key of its own and this much USDC, for the channel entry of a 402. */
async function newPayer(network: EmbeddedNetwork, challenge: Answer, units: bigint) {
  const { privateKey, address } = await newBuyer(network, units);
  const requirement = channelEntry(String(challenge.headers['payment-required']));
  const { url } = decoded(challenge, 'payment-required').resource as { url: string };
  const buyer = channelBuyer(privateKey, requirement);
  const inWallet = () => balanceOf(network, address);
  return {
    buyer,
    privateKey,
    requirement,
    inWallet,
    price: BigInt(requirement.amount),
    /** What is neither in the wallet nor in the channel for the payer. `away`: what the payer has moved elsewhere. */
    lost: async (away = 0n): Promise<bigint> => {
      const charged = await chargedAndClaimed(network, url, buyer);
      const { balance } = await channelOnChain(network, buyer.id);
      return units - away - (await inWallet()) - (balance - charged);
    },
  };
}

const read = (header: string): Header => JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
const depositOf = (header: string) => {
  const payload = readPayload(read(header).payload);
  if (payload.kind !== 'deposit') throw new Error('no deposit');
  return depositPayment(payload);
};
/** The same payment under a requirement with changes. */
const under = (header: string, changes: Partial<Requirement>): string => {
  const { accepted, ...rest } = read(header);
  return headerOf({ ...rest, accepted: { ...accepted, ...changes } });
};

/** The first call of a channel, paid by a voucher that comes with the deposit. The deposit is settled like a payment of `usdc-exact`. */
export const usdcDeposit: RailFixture = {
  ...signedRail('usdc-channels by deposit', async (network) => ({
    ...openChannels(network, DEPOSITS),
    pay: (challenge, wrong) => payByDeposit(network, challenge, wrong),
    evidenceOf: async ({ transaction, extra }: Receipt) => {
      const { channelId } = (extra as { channelState: Shown }).channelState;
      const receipt = await network.rpc<{ logs: object[] } | null>('eth_getTransactionReceipt', [transaction]);
      if (!receipt || !JSON.stringify(receipt.logs).includes(channelId.slice(2))) return 0n;
      return (await eventsOf(network, 'Deposited', channelId)).reduce((sum, amount) => sum + amount, 0n);
    },
  })),
  isOffered,
};

/** A call that is paid by a voucher alone. */
export const usdcVoucher: RailFixture = {
  ...signedRail('usdc-channels by voucher', async (network) => {
    const outsider = await newOutsider(network);
    return {
      ...openChannels(network, CLAIMS),
      pay: (challenge, wrong) => payByVoucher(network, outsider, challenge, wrong),
      idIn: ({ extra }) => {
        const { channelId, chargedCumulativeAmount } = (extra as { channelState: Shown }).channelState;
        return voucherId(hexToBytes(channelId as `0x${string}`), BigInt(chargedCumulativeAmount));
      },
      evidenceOf: async ({ extra }) => {
        const { channelId, chargedCumulativeAmount } = (extra as { channelState: Shown }).channelState;
        const claimed = async () => (await channelOnChain(network, hexToBytes(channelId as `0x${string}`))).claimed;
        await until('the voucher is claimed', async () => (await claimed()) >= BigInt(chargedCumulativeAmount));
        return claimed();
      },
    };
  }),
  kind: 'escrowed',
  cannot: {
    expired: 'a voucher has no time of its own: it holds as long as its channel has the money',
    'spent meanwhile':
      'the contract holds the money, and a withdrawal takes 15 minutes at least; test/conformance/channels/withdrawals.test.ts moves the clock',
    'unclear settlement':
      'no third party settles a voucher: its answer and its charge are one write; test/fault/ledger.test.ts has writes that fail',
    'secret kept from answers':
      'the scheme wants a corrective 402 to repeat the last voucher to its own payer, as the proof of the charges',
  },
  isOffered,
};

function isOffered({ headers }: Answer): boolean {
  return findChannelEntry(String(headers['payment-required'])) !== undefined;
}

async function payByDeposit(network: EmbeddedNetwork, challenge: Answer, wrong?: Wrong): Promise<RailPayment> {
  const units = wrong === 'without the money' ? 0n : FUNDS;
  const { buyer, privateKey, requirement, price, lost, inWallet } = await newPayer(network, challenge, units);
  const signer = wrong === 'expired' ? channelBuyer(privateKey, { ...requirement, maxTimeoutSeconds: -10 }) : buyer;
  const amount = wrong === 'too small' ? DEPOSIT - 1n : DEPOSIT;
  const right = under(signer.deposit(amount, price), requirement);
  const { authorization } = depositOf(right);
  const signature = bytesToHex(authorization.signature);
  const header = presented(right, signature, wrong);
  let away = 0n;
  return {
    header,
    mended: header === right ? null : right,
    id: bytesToHex(authorization.nonce),
    price,
    moved: DEPOSIT,
    secret: signature.slice(2),
    lost: () => lost(away),
    spend: async () => {
      away = await inWallet();
      // Between two blocks of its own, as for a payer of usdc-exact.
      const move = async (moved: bigint): Promise<void> => {
        await network.mine();
        await network.fundUsdc(buyer.address, moved);
        await network.mine();
      };
      await move(-away);
      return async () => {
        await move(away);
        away = 0n;
      };
    },
  };
}

async function payByVoucher(
  network: EmbeddedNetwork,
  outsider: Awaited<ReturnType<typeof newOutsider>>,
  challenge: Answer,
  wrong?: Wrong,
): Promise<RailPayment> {
  const { buyer, price, lost } = await newPayer(network, challenge, FUNDS);
  if (wrong !== 'without the money') {
    const { contractCall: call } = depositOf(buyer.deposit(DEPOSIT, price));
    if (!call) throw new Error('a deposit without a call');
    await outsider.send(bytesToHex(call.data), bytesToHex(call.to));
  }
  const right = buyer.voucher(price);
  const signature = (read(right).payload.voucher as { signature: `0x${string}` }).signature;
  const header = wrong === 'too small' ? buyer.voucher(price - 1n) : presented(right, signature, wrong);
  return {
    header,
    mended: header === right ? null : right,
    id: voucherId(buyer.id, price),
    price,
    lost: () => lost(),
    secret: signature.slice(2),
  };
}

/** The payment that the payer presents. */
function presented(right: string, signature: string, wrong: Wrong | undefined): string {
  if (wrong === 'of another network') return under(right, { network: 'eip155:1' });
  if (wrong !== 'forged') return right;
  return headerOf(JSON.parse(JSON.stringify(read(right)).replaceAll(signature, `0x${'11'.repeat(65)}`)));
}

/** The id under which a voucher is looked up: a hash of the channel and what was signed for in all. */
const voucherId = (channelId: Uint8Array, max: bigint): string =>
  bytesToHex(keccak256(Buffer.concat([channelId, word(max)])));
