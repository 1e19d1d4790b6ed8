import { bytesToHex } from '../../../src/lib/hex.ts';
import type { Authorization } from '../../../src/payment/authorization.ts';
import { headerOf, payloadOf, type Requirement, type signAuthorization } from '../usdc/payments.ts';
import type { RailPayment, Wrong } from './rail-fixture.ts';

type Changes = NonNullable<Parameters<typeof signAuthorization>[2]>;

interface Signing {
  readonly requirement: Requirement;
  readonly wrong: Wrong | undefined;
  sign(changes?: Changes): Authorization;
}

/** A payer's money: what it holds, and a way to take it elsewhere. */
interface Purse {
  balance(): Promise<bigint>;
  /** A negative number takes. */
  add(units: bigint): Promise<void>;
}

/** A payment by a signed authorization, from a purse that is counted from now on. */
export async function usdcPayment({ requirement, wrong, sign }: Signing, purse: Purse): Promise<RailPayment> {
  const before = await purse.balance();
  let taken = 0n;
  const authorization = sign(changesOf(wrong, requirement));
  const right = headerOf(payloadOf(authorization, requirement));
  const header = headerOf(presented(wrong, authorization, requirement));
  return {
    header,
    mended: header === right ? null : right,
    id: bytesToHex(authorization.nonce),
    price: BigInt(requirement.amount),
    secret: Buffer.from(authorization.signature).toString('hex'),
    lost: async () => before - taken - (await purse.balance()),
    spend: async () => {
      taken = await purse.balance();
      await purse.add(-taken);
      return async () => {
        await purse.add(taken);
        taken = 0n;
      };
    },
  };
}

/** What is signed. */
function changesOf(wrong: Wrong | undefined, { amount }: Requirement): Changes {
  if (wrong === 'too small') return { value: BigInt(amount) - 1n };
  if (wrong === 'expired') return { validBefore: BigInt(Math.floor(Date.now() / 1000) - 10) };
  return {};
}

/** What is presented. */
function presented(wrong: Wrong | undefined, authorization: Authorization, requirement: Requirement): object {
  if (wrong === 'forged') return payloadOf({ ...authorization, signature: Buffer.alloc(65, 17) }, requirement);
  if (wrong === 'of another network') return payloadOf(authorization, { ...requirement, network: 'eip155:1' });
  return payloadOf(authorization, requirement);
}
