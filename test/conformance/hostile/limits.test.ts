import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { latchedEndpoint } from '../../support/service/latch.ts';
import { type Answer, type Service, startService } from '../../support/service/service.ts';
import { until, untilReady } from '../../support/service/workers.ts';
import { createStillClock } from '../../support/still-clock.ts';
import { newBuyer, present } from '../../support/usdc/buyer.ts';
import { CODE, newContractPayer } from '../../support/usdc/contract-payer.ts';

// Rows of docs/limits.md that no other test shows over HTTP: what a payer without funds can cause is bounded.

const ELSEWHERE = '127.0.0.2';
const latch = latchedEndpoint();

const clock = createStillClock();
let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  const env = { CLIENT_FAILED_SETTLEMENTS_PER_DAY: '1', RECEIPT_POLL_MS: '50' };
  service = await startService(network, { env, catalogue: [latch.endpoint], clock });
  await untilReady(service);
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

interface Payer {
  sign: Awaited<ReturnType<typeof newBuyer>>['sign'];
}
const buy = async (payer: Payer, from?: string): Promise<Answer> =>
  present(service.origin, latch.path, await payer.sign(service.origin, latch.path), from);
/** The status of an answer, and the word for why it is not 200: the code of a problem, or the reason of a 402. */
function endOf({ status, headers, body }: Answer): [status: number, why: string | undefined] {
  const required = headers['payment-required'];
  if (required) return [status, JSON.parse(Buffer.from(String(required), 'base64').toString('utf8')).error];
  return [status, JSON.parse(body).code];
}

/** A buyer takes its money away while it is served, so that its settlement moves nothing. */
async function failSettlement(from: string): Promise<Payer> {
  const buyer = await newBuyer(network, 1000n);
  latch.close();
  const answer = buy(buyer, from);
  await until('it is served', () => latch.waiting() === 1);
  await network.fundUsdc(buyer.address, -1000n);
  latch.open();
  expect(endOf(await answer)).toEqual([402, 'invalid_exact_evm_transaction_failed']);
  await network.fundUsdc(buyer.address, 1_000_000n);
  return buyer;
}

describe('a client', () => {
  afterEach(clock.start);

  test('whose payer holds too little is told to wait at its next payment, and no handler runs for either', async () => {
    const before = latch.runs();
    const empty = await newBuyer(network, 0n);
    // The wait is three seconds.
    clock.stop();
    expect(endOf(await buy(empty))).toEqual([402, 'invalid_exact_evm_insufficient_balance']);
    const again = await buy(empty);
    expect(endOf(again)).toEqual([429, 'payer_short_of_funds']);
    expect(Number(again.headers['retry-after'])).toBeLessThanOrEqual(3);
    expect(latch.runs()).toBe(before);
  });

  test('gets eight signatures of contracts checked a minute, and another client’s contract is asked meanwhile', async () => {
    const before = latch.runs();
    const refusing = await newContractPayer(network, CODE.silent);
    const ends: unknown[] = [];
    for (let check = 0; check < 10; check++) ends.push(endOf(await buy(refusing, '127.0.0.3')));
    const [refused, wait] = [
      [402, 'invalid_exact_evm_signature'],
      [429, 'contract_signatures'],
    ];
    expect(ends).toEqual([...Array(8).fill(refused), wait, wait]);
    expect(latch.runs()).toBe(before);
    const honest = await newContractPayer(network, CODE.agrees);
    expect((await buy(honest, ELSEWHERE)).status).toBe(200);
  });

  test('after settlements that moved nothing may pay only from payers that have paid before, and other clients from any', async () => {
    const from = '127.0.0.4';
    const known = await newBuyer(network);
    expect((await buy(known, from)).status).toBe(200);
    const failed = await failSettlement(from);
    expect(endOf(await buy(failed, ELSEWHERE))).toEqual([429, 'payer_failures']);
    const before = latch.runs();
    expect(endOf(await buy(await newBuyer(network), from))).toEqual([429, 'client_refused']);
    expect(latch.runs()).toBe(before);
    expect((await buy(known, from)).status).toBe(200);
    expect((await buy(await newBuyer(network), ELSEWHERE)).status).toBe(200);
  });
});
