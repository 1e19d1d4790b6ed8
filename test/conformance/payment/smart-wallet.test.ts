import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { signRecoverable } from '../../../src/lib/secp256k1.ts';
import { authorizationDigest } from '../../../src/payment/usdc/authorization.ts';
import { domainSeparator } from '../../../src/payment/usdc/token.ts';
import { priceOf } from '../../support/prices.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { balanceOf, decoded, present } from '../../support/usdc/buyer.ts';
import { headerOf, newKey, payloadOf, requirementOf, signAuthorization } from '../../support/usdc/payments.ts';

const PATH = '/v1/paid/fees/estimate';
let network: EmbeddedNetwork;
let service: Service;
const owner = newKey();
let wallet: `0x${string}`;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  service = await startService(network);
  wallet = await network.deploy('SmartWallet', [owner.address]);
  await network.fundUsdc(wallet, 10_000n);
});
afterAll(async () => {
  await service.stop();
  await network.stop();
});

/** A payment of the wallet, signed by any key. `tail` makes the signature longer than a key's. */
async function payment(privateKey: Uint8Array, tail = Buffer.alloc(0)) {
  const requirement = requirementOf((await service.get(PATH)).headers);
  const unsigned = { ...signAuthorization(privateKey, requirement), from: hexToBytes(wallet) };
  const separator = domainSeparator('USDC', '2', network.chainId, hexToBytes(network.usdc));
  const signature = signRecoverable(authorizationDigest(unsigned, separator), privateKey);
  const signed = { ...unsigned, signature: Buffer.concat([signature, tail]) };
  return { header: headerOf(payloadOf(signed, requirement)) };
}

test('a smart wallet pays with its owner’s signature (ERC-1271)', async () => {
  const before = await balanceOf(network, wallet);
  const answer = await present(service.origin, PATH, await payment(owner.privateKey));
  expect(answer.status).toBe(200);
  expect(decoded(answer, 'payment-response')).toMatchObject({ success: true, payer: wallet.toLowerCase() });
  expect(await balanceOf(network, wallet)).toBe(before - priceOf(PATH).units);
});

test('another key’s signature is refused by the smart wallet, and so by us before the handler runs', async () => {
  const answer = await present(service.origin, PATH, await payment(newKey().privateKey));
  expect([answer.status, decoded(answer, 'payment-required').error]).toEqual([402, 'invalid_exact_evm_signature']);
});

test('an account without code is not accepted as a smart wallet', async () => {
  const otherAccount = newKey();
  const requirement = requirementOf((await service.get(PATH)).headers);
  const signed = { ...signAuthorization(owner.privateKey, requirement), from: hexToBytes(otherAccount.address) };
  const answer = await present(service.origin, PATH, { header: headerOf(payloadOf(signed, requirement)) });
  expect([answer.status, decoded(answer, 'payment-required').error]).toEqual([402, 'invalid_exact_evm_signature']);
});

test('a key that was delegated to code (EIP-7702) is verified by its code, as the token does', async () => {
  const delegated = newKey();
  await network.fundUsdc(delegated.address, 10_000n);
  // Its own signature recovers to it, but the code at its address has another owner.
  const code = await network.rpc<string>('eth_getCode', [wallet, 'latest']);
  await network.rpc('anvil_setCode', [delegated.address, code]);
  const requirement = requirementOf((await service.get(PATH)).headers);
  const signed = signAuthorization(delegated.privateKey, requirement);
  const answer = await present(service.origin, PATH, { header: headerOf(payloadOf(signed, requirement)) });
  expect(answer.status).toBe(402);
  expect(decoded(answer, 'payment-required').error).toBe('invalid_exact_evm_transaction_simulation_failed');
  expect(await balanceOf(network, delegated.address)).toBe(10_000n);
});
