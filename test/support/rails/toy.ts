import { randomBytes } from 'node:crypto';
import { until } from '../service/workers.ts';
import { headerOf, requirementOf } from '../usdc/payments.ts';
import type { RailFixture, Wrong } from './rail-fixture.ts';
import { signToy, startToyBank, type ToyPayment } from './toy-bank.ts';
import { usdcUnits } from './usdc-payment.ts';

const FUNDS = 100_000n;
const DAY_SECONDS = 86_400;

/** The toy rail: what a rail must bring, and no more. */
export const toy: RailFixture = {
  name: 'toy',
  kind: 'signed-first',
  surface: 'paid',
  program: 'toy-shop.ts',
  cannot: {},
  unitsOf: usdcUnits,
  open: async () => {
    const bank = await startToyBank();
    return {
      env: { TOY_BANK_URL: bank.url },
      secrets: [],
      pay: async ({ headers }, wrong) => {
        const { from, key, account } = bank.open(wrong === 'without the money' ? 0n : FUNDS);
        const accepted = requirementOf(headers);
        const price = BigInt(accepted.amount);
        const payment = signed(key, { from, to: accepted.payTo, price, wrong });
        const headerFor = (changes: object, payload: object) =>
          headerOf({ x402Version: 2, accepted: { ...accepted, ...changes }, payload });
        const right = headerFor({}, payment);
        const header = headerFor(
          wrong === 'of another network' ? { network: 'eip155:1' } : {},
          wrong === 'forged' ? { ...payment, signature: `0x${'11'.repeat(32)}` } : payment,
        );
        let spent = 0n;
        return {
          ...{ header, mended: header === right ? null : right, id: payment.nonce, price },
          secret: payment.signature.slice(2),
          lost: async () => (wrong === 'without the money' ? 0n : FUNDS) - spent - account.balance,
          spend: async () => {
            spent = account.balance;
            account.balance = 0n;
            return async () => {
              account.balance = spent;
              spent = 0n;
            };
          },
        };
      },
      hang: async () => {
        const [heal, before] = [bank.hold(), bank.asked()];
        return {
          arrived: () => until('a settlement waits at the bank', () => bank.asked() > before),
          heal: async () => heal(),
        };
      },
      evidenceOf: async (transaction) => bank.movedBy(transaction),
      close: bank.stop,
    };
  },
};

interface Signing {
  readonly from: string;
  readonly to: string;
  readonly price: bigint;
  readonly wrong: Wrong | undefined;
}

function signed(key: Buffer, { from, to, price, wrong }: Signing): ToyPayment {
  const lasts = wrong === 'expired' ? -10 : DAY_SECONDS;
  const fields = {
    ...{ from, to, value: String(wrong === 'too small' ? price - 1n : price), validAfter: '0' },
    validBefore: String(Math.floor(Date.now() / 1000) + lasts),
    nonce: `0x${randomBytes(32).toString('hex')}`,
  };
  return { ...fields, signature: signToy(key, fields) };
}
