import { randomBytes } from 'node:crypto';
import { decoded } from '../usdc/buyer.ts';
import { headerOf, type Requirement } from '../usdc/payments.ts';
import type { Wrong } from './rail-fixture.ts';
import { FUNDS, hangAt, signedRail } from './signed-rail.ts';
import { signToy, startToyBank, type ToyPayment } from './toy-bank.ts';

const DAY_SECONDS = 86_400;

/** The toy rail: what a rail must bring, and no more. The real service sells over it as one more entry of its list. */
export const toy = signedRail('toy', async (network) => {
  const bank = await startToyBank();
  return {
    env: { TOY_BANK_URL: bank.url },
    secrets: [network.relayer.privateKey.slice(2)],
    pay: async (challenge, wrong) => {
      const { from, key, account } = bank.open(wrong === 'without the money' ? 0n : FUNDS);
      const { accepts } = decoded(challenge, 'payment-required') as { accepts: Requirement[] };
      const accepted = accepts.find(({ scheme }) => scheme === 'toy')!;
      const price = BigInt(accepted.amount);
      const payment = signed(key, { from, to: accepted.payTo.toLowerCase(), price, wrong });
      const headerFor = (changes: object, payload: object) =>
        headerOf({ x402Version: 2, accepted: { ...accepted, ...changes }, payload });
      const right = headerFor({}, payment);
      const header = headerFor(
        wrong === 'of another network' ? { network: 'eip155:1' } : {},
        wrong === 'forged' ? { ...payment, signature: `0x${'11'.repeat(32)}` } : payment,
      );
      let spent = 0n;
      return {
        header,
        mended: header === right ? null : right,
        id: payment.nonce,
        price,
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
    hang: async () => hangAt(bank),
    evidenceOf: async ({ transaction }) => bank.movedBy(String(transaction)),
    close: bank.stop,
  };
});

interface Signing {
  readonly from: string;
  readonly to: string;
  readonly price: bigint;
  readonly wrong: Wrong | undefined;
}

function signed(key: Buffer, { from, to, price, wrong }: Signing): ToyPayment {
  const lasts = wrong === 'expired' ? -10 : DAY_SECONDS;
  const fields = {
    from,
    to,
    value: String(wrong === 'too small' ? price - 1n : price),
    validAfter: '0',
    validBefore: String(Math.floor(Date.now() / 1000) + lasts),
    nonce: `0x${randomBytes(32).toString('hex')}`,
  };
  return { ...fields, signature: signToy(key, fields) };
}
