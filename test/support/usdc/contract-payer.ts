import { randomBytes } from 'node:crypto';
import type { EmbeddedNetwork } from '../../../src/embedded/network.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { call } from '../service/service.ts';
import type { Payment } from './buyer.ts';
import { headerOf, newKey, payloadOf, type Requirement, requirementOf, signAuthorization } from './payments.ts';

/** Code of payers (ERC-1271) by what it says to any signature. */
export const CODE = {
  /** Yes. */
  agrees: '0x631626ba7e60e01b5f5260205ff3',
  /** Yes where nobody pays for gas, as in a trial that names no price; otherwise no. */
  agreesInFreeTrials: '0x3a15631626ba7e60e01b025f5260205ff3',
  /** Nothing. */
  silent: '0x00',
} as const;

/** A payer that is a contract with this code and some USDC; any signature is its own. */
export async function newContractPayer(network: EmbeddedNetwork, code: string, units = 1_000_000n) {
  const address = bytesToHex(randomBytes(20));
  await network.fundUsdc(address, units);
  const become = (next: string) => network.rpc('anvil_setCode', [address, next]);
  await become(code);
  return {
    address,
    /** From now on it has this code. */
    become,
    sign: async (
      origin: string,
      path: string,
      overrides?: Parameters<typeof signAuthorization>[2],
    ): Promise<Payment> => {
      const requirement: Requirement = requirementOf((await call(origin, path)).headers);
      const signed = signAuthorization(newKey().privateKey, requirement, overrides);
      const authorization = { ...signed, from: hexToBytes(address) };
      return { authorization, requirement, header: headerOf(payloadOf(authorization, requirement)) };
    },
  };
}
