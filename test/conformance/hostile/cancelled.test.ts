import { parseTransaction } from 'viem';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { type FaultProxy, type ProxiedCall, startFaultProxy } from '../../support/chain/fault-proxy.ts';
import { describeServices } from '../../support/ledger/on-ledgers.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { type Answer, type Service, startService } from '../../support/service/service.ts';
import { presentUntilServed, until } from '../../support/service/workers.ts';
import { decoded, newBuyer, type Payment, present, transfersOf } from '../../support/usdc/buyer.ts';
import { cancelCalldata, newOutsider } from '../../support/usdc/outsider.ts';

/** Every settlement is late after this; the test waits many times longer for an end. */
const SETTLE_WAIT_MS = 5000;
const NO_GAS = { code: -32003, message: 'insufficient funds for gas * price + value' };

let network: EmbeddedNetwork;
let chain: FaultProxy;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  chain = await startFaultProxy(network.rpcUrl);
});
afterAll(async () => {
  await chain.stop();
  await network.stop();
});

/** The relayer's nonce of a transaction that is sent, and whether it holds this payment; null for every other call. */
function sending({ method, params }: ProxiedCall, { authorization }: Payment) {
  if (method !== 'eth_sendRawTransaction') return null;
  const { nonce = 0, data = '0x' } = parseTransaction(params[0] as `0x${string}`);
  return { nonce, holdsIt: data.includes(Buffer.from(authorization.nonce).toString('hex')) };
}

describeServices('a payment that its payer cancels', (ledgerEnv) => {
  const latch = latchedEndpoint();
  const other = latchedEndpoint('/test/other');
  let service: Service;
  beforeAll(async () => {
    const env = { RPC_URLS: chain.url, SETTLE_WAIT_MS: String(SETTLE_WAIT_MS) };
    const often = { RECONCILE_INTERVAL_MS: '500', RECEIPT_POLL_MS: '100' };
    service = await startService(network, {
      catalogue: [latch.endpoint, other.endpoint],
      env: { ...env, ...often, ...(await ledgerEnv()) },
    });
    return () => service.stop();
  });
  beforeEach(() => () => chain.play({}));

  const buy = (payment: Payment, { path } = latch): Promise<Answer> => present(service.origin, path, payment);

  test('after nodes have refused it under another nonce comes to its end, and sales go on', async () => {
    const [outsider, payer, hostile] = await Promise.all([newOutsider(network), newBuyer(network), newBuyer(network)]);
    const [beside, cancelled] = [
      await payer.sign(service.origin, other.path),
      await hostile.sign(service.origin, latch.path),
    ];

    // 1. The relayer has no gas: nodes refuse both payments, the hostile one at last under the second nonce.
    const isSent = Promise.withResolvers<void>();
    const isRefused = Promise.withResolvers<void>();
    let lowest = Number.POSITIVE_INFINITY;
    chain.play({
      fate: (call) => {
        const sent = sending(call, cancelled);
        if (!sent) return 'pass';
        lowest = Math.min(lowest, sent.nonce);
        isSent.resolve();
        if (sent.holdsIt && sent.nonce > lowest) isRefused.resolve();
        return { error: NO_GAS };
      },
    });
    other.close();
    const answers = [buy(beside, other)];
    // It is admitted before nodes refuse the first: a service that knows of the empty relayer admits nobody.
    await until('the other one is served', () => other.waiting() === 1);
    answers.push(buy(cancelled));
    await isSent.promise;
    other.open();
    await isRefused.promise;
    // 2. The other one ends, so that the hostile one is sent under the first nonce again.
    await outsider.send(cancelCalldata(network, payer.privateKey, beside.authorization));
    await until('the other one has ended', async () => (await buy(beside, other)).status === 402);
    // 3. There is gas again. The hostile payer cancels before its transaction arrives.
    chain.play({
      before: async (call) => {
        const sent = sending(call, cancelled);
        if (sent?.holdsIt && sent.nonce === lowest)
          await outsider.send(cancelCalldata(network, hostile.privateKey, cancelled.authorization));
      },
    });
    await Promise.all(answers);

    await until('the cancelled one has ended', async () => (await buy(cancelled)).status === 402);
    expect(decoded(await buy(cancelled), 'payment-required').error).toBe('invalid_exact_evm_nonce_already_used');
    expect([await transfersOf(network, cancelled), await transfersOf(network, beside)]).toEqual([0, 0]);
    const honest = await (await newBuyer(network)).sign(service.origin, latch.path);
    expect((await presentUntilServed(service.origin, latch.path, honest)).status).toBe(200);
  });
});
