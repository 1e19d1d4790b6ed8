import { connect } from 'node:net';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { signRecoverable } from '../../../src/lib/secp256k1.ts';
import { authorizationDigest } from '../../../src/payment/usdc/authorization.ts';
import { domainSeparator } from '../../../src/payment/usdc/token.ts';
import { newBuyer, type Payment } from '../usdc/buyer.ts';
import { newMppBuyer } from '../usdc/mpp-buyer.ts';
import { headerOf, newKey, payloadOf, requirementOf, signAuthorization } from '../usdc/payments.ts';
import { call } from './service.ts';

/** A buyer with an account that pays. */
export interface Payer {
  readonly address: `0x${string}`;
  /** Whether the account is a contract. */
  readonly isWallet: boolean;
  /** Where it buys: under /v1/paid by x402, under /v1/mpp by MPP. */
  readonly mount: '/v1/paid' | '/v1/mpp';
  sign(origin: string, path: string): Promise<Payment>;
}

/** Makes buyers that pay from a key of their own, some of them by MPP, and buyers that pay from a contract which knows their key (ERC-1271). */
export async function newPayers(
  network: EmbeddedNetwork,
  { keys, byMpp, wallets }: { keys: number; byMpp: number; wallets: number },
  units: bigint,
): Promise<Payer[]> {
  const payers: Payer[] = [];
  const [paid, mpp] = [{ isWallet: false, mount: '/v1/paid' } as const, { isWallet: false, mount: '/v1/mpp' } as const];
  for (let made = 0; made < keys; made++) payers.push({ ...(await newBuyer(network, units)), ...paid });
  for (let made = 0; made < byMpp; made++) payers.push({ ...(await newMppBuyer(network, units)), ...mpp });
  for (let made = 0; made < wallets; made++) payers.push(await newWalletPayer(network, units));
  return payers;
}

async function newWalletPayer(network: EmbeddedNetwork, units: bigint): Promise<Payer> {
  const { privateKey, address: owner } = newKey();
  const address = await network.deploy('SmartWallet', [owner]);
  await network.fundUsdc(address, units);
  const separator = domainSeparator('USDC', '2', network.chainId, hexToBytes(network.usdc));
  return {
    address,
    isWallet: true,
    mount: '/v1/paid',
    sign: async (origin, path) => {
      const requirement = requirementOf((await call(origin, path)).headers);
      const unsigned = { ...signAuthorization(privateKey, requirement), from: hexToBytes(address) };
      const signature = signRecoverable(authorizationDigest(unsigned, separator), privateKey);
      const authorization = { ...unsigned, signature };
      return { authorization, requirement, header: headerOf(payloadOf(authorization, requirement)) };
    },
  };
}

/** Presents a payment and discards the answer, like a network that breaks. Returns when the other side has closed. */
export async function presentAndDiscard(
  origin: string,
  path: string,
  { header, field = 'PAYMENT-SIGNATURE' }: Pick<Payment, 'header'> & { field?: string },
): Promise<null> {
  const { hostname, port, host } = new URL(origin);
  const socket = connect({ host: hostname, port: Number(port) }).resume();
  socket.on('error', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${field}: ${header}\r\n\r\n`);
  await new Promise((gone) => socket.once('close', gone));
  return null;
}
