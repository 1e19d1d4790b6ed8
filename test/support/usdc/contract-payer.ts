import { randomBytes } from 'node:crypto';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex, hexToBytes } from '../../../src/lib/hex.ts';
import { call } from '../service/service.ts';
import type { Payment } from './buyer.ts';
import { headerOf, newKey, payloadOf, type Requirement, requirementOf, signAuthorization } from './payments.ts';

/** Contract codes of payers (ERC-1271), by their answer to any signature. */
export const CODE = {
  /** Valid. */
  agrees: '0x631626ba7e60e01b5f5260205ff3',
  /** Valid while the gas price is zero, as in a simulation without a price. Otherwise invalid. */
  agreesInFreeTrials: '0x3a15631626ba7e60e01b025f5260205ff3',
  /** No answer. */
  silent: '0x00',
} as const;

/** A payer that is a contract with this code and some USDC. The code decides about every signature. */
export async function newContractPayer(network: EmbeddedNetwork, code: string, units = 1_000_000n) {
  const address = bytesToHex(randomBytes(20));
  await network.fundUsdc(address, units);
  const become = (next: string) => network.rpc('anvil_setCode', [address, next]);
  await become(code);
  return {
    address,
    /** Replaces its code. */
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
