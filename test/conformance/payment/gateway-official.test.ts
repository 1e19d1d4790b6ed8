import { BatchEvmScheme } from '@circle-fin/x402-batching/client';
import { BatchFacilitatorClient } from '@circle-fin/x402-batching/server';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { transactionText } from '../../../src/payment/settler.ts';
import { decodeEip3009 } from '../../../src/payment/usdc/authorization.ts';
import { settleRequest } from '../../../src/payment/usdc/facilitator.ts';
import {
  createGatewayCheck,
  createGatewaySignatureCheck,
  gatewayExtra,
  gatewayRequirement,
} from '../../../src/payment/usdc/gateway.ts';
import { createGatewayClient, createGatewayEvidence } from '../../../src/payment/usdc/gateway-client.ts';
import { createUpstreams } from '../../../src/upstream/client/client.ts';
import { type GatewayStandIn, startGatewayStandIn } from '../../support/usdc/gateway-stand-in.ts';
import { newKey, plainRequirement, USDC } from '../../support/usdc/payments.ts';

// Circle's own package on the buyer's and on the seller's side. We verify what it signs, and the stand-in answers it as it answers us.
const WALLET = `0x${'77'.repeat(20)}` as const;
const NETWORK = 'eip155:5042';
const seller = newKey();
const requirement = gatewayRequirement(plainRequirement(seller.address), WALLET);
const terms = { network: NETWORK, usdc: USDC, extra: gatewayExtra(WALLET), publicOrigin: 'https://a.test' } as const;

let gateway: GatewayStandIn;
beforeAll(async () => {
  gateway = await startGatewayStandIn(5042, WALLET);
});
afterAll(async () => {
  await gateway.stop();
});

async function officialPayment() {
  const { privateKey, address } = newKey();
  const account = privateKeyToAccount(bytesToHex(privateKey));
  const signTypedData = (typed: object) => account.signTypedData(typed as never);
  const scheme = new BatchEvmScheme({ address: account.address, signTypedData });
  const { payload } = await scheme.createPaymentPayload(2, requirement);
  return { address, authorization: decodeEip3009({ ...payload }) };
}

test('a payment of the official client passes our checks, and the Gateway accepts it from us', async () => {
  const { address, authorization } = await officialPayment();
  createGatewayCheck({ handlerTimeoutMs: 10_000 })(authorization, requirement, Math.floor(Date.now() / 1000));
  await createGatewaySignatureCheck(5042, WALLET)(authorization);
  gateway.deposit(address, 1000n);
  const upstreams = createUpstreams({ clock: systemClock, userAgent: 'percall/test' });
  const upstream = upstreams.open({
    name: 'gateway',
    timeoutMs: 30_000,
    maxBytes: 65_536,
    concurrency: 4,
    retries: 0,
  });
  const client = createGatewayClient({ upstream, url: gateway.url, token: null, network: NETWORK });
  const signal = new AbortController().signal;
  const reply = await client.settle(settleRequest(authorization, terms), 'id', signal);
  const verdict = await createGatewayEvidence(client, NETWORK, systemClock).lookup(authorization);
  expect(reply.kind === 'accepted' && verdict.kind === 'settled').toBe(true);
  if (reply.kind === 'accepted' && verdict.kind === 'settled')
    expect(transactionText(verdict.transaction)).toBe(reply.transaction);
  await upstreams.close();
});

test('the official facilitator client gets the same answers for the same payment', async () => {
  const { address, authorization } = await officialPayment();
  const { paymentPayload, paymentRequirements } = settleRequest(authorization, terms);
  const official = new BatchFacilitatorClient({ url: gateway.url });
  const pair = [paymentPayload, paymentRequirements] as unknown as Parameters<typeof official.settle>;
  expect(await official.verify(...pair)).toMatchObject({ isValid: true });
  expect(await official.settle(...pair)).toMatchObject({ success: false, errorReason: 'wallet_not_found' });
  gateway.deposit(address, 1000n);
  expect(await official.settle(...pair)).toMatchObject({ success: true, network: NETWORK, payer: address });
  expect(await official.settle(...pair)).toMatchObject({ success: false, errorReason: 'nonce_already_used' });
  expect((await official.getSupported()).kinds).toMatchObject([{ network: NETWORK, extra: gatewayExtra(WALLET) }]);
});
