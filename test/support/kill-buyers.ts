import type { EmbeddedNetwork } from '../../scripts/embedded/network.ts';
import { hexToBytes } from '../../src/lib/hex.ts';
import { signDigest } from '../../src/lib/secp256k1.ts';
import { authorizationDigest, domainSeparator } from '../../src/payment/usdc/authorization.ts';
import { newBuyer, type Payment } from './buyer.ts';
import { headerOf, newKey, payloadOf, requirementOf, signAuthorization } from './payments.ts';
import { call } from './service.ts';

/** Somebody who pays for calls, by whatever account. */
export interface Payer {
  readonly address: `0x${string}`;
  /** Whether it is a contract. */
  readonly isWallet: boolean;
  sign(origin: string, path: string): Promise<Payment>;
}

/** So many buyers with a key of their own, and so many that pay from a contract which knows their key (ERC-1271). */
export function newPayers(network: EmbeddedNetwork, keys: number, wallets: number, units: bigint): Promise<Payer[]> {
  return Promise.all([
    ...Array.from({ length: keys }, async () => ({ ...(await newBuyer(network, units)), isWallet: false })),
    ...Array.from({ length: wallets }, () => newWalletPayer(network, units)),
  ]);
}

async function newWalletPayer(network: EmbeddedNetwork, units: bigint): Promise<Payer> {
  const { privateKey, address: owner } = newKey();
  const address = await network.deploy('SmartWallet', [owner]);
  await network.fundUsdc(address, units);
  const separator = domainSeparator('USDC', '2', network.chainId, hexToBytes(network.usdc));
  return {
    address,
    isWallet: true,
    sign: async (origin, path) => {
      const requirement = requirementOf((await call(origin, path)).headers);
      const unsigned = { ...signAuthorization(privateKey, requirement), from: hexToBytes(address) };
      const { signature, recovery } = signDigest(authorizationDigest(unsigned, separator), privateKey);
      const authorization = { ...unsigned, signature: Buffer.concat([signature, Buffer.from([27 + recovery])]) };
      return { authorization, requirement, header: headerOf(payloadOf(authorization, requirement)) };
    },
  };
}
