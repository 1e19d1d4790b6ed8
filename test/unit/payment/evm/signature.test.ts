import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OpenChainClient } from '../../../../src/chain/rpc/client.ts';
import { hexToBytes } from '../../../../src/lib/hex.ts';
import type { PayerReading, Sale } from '../../../../src/payment/rail.ts';
import type { Authorization } from '../../../../src/payment/settler.ts';
import { authorizationDigest } from '../../../../src/payment/usdc/authorization.ts';
import {
  checkCodeTaken,
  createChainCheck,
  createContractBudget,
  createSignatureCheck,
} from '../../../../src/payment/usdc/checks.ts';
import { domainSeparator } from '../../../../src/payment/usdc/token.ts';
import { openClient } from '../../../support/chain/client.ts';
import { type RpcServer, startRpcServer } from '../../../support/chain/rpc-server.ts';
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts';
import { newKey, plainRequirement, signAuthorization, signedPayment, USDC } from '../../../support/usdc/payments.ts';

const MAGIC = `0x1626ba7e${'0'.repeat(56)}`;
const NO = `0x${'f'.repeat(64)}`;
const requirement = plainRequirement(`0x${'5e'.repeat(20)}`);
const REFUSED = { reason: 'invalid_exact_evm_signature' };

let node: RpcServer;
let chain: OpenChainClient;
let clock: ManualClock;
let hasCode: boolean;
let answer: string;
let codeRefused: string | null;
let hasPaid: boolean;
let check: (authorization: Authorization, client?: string, hasFailed?: boolean) => Promise<PayerReading | null>;
beforeEach(async () => {
  [hasCode, answer, codeRefused, hasPaid] = [false, NO, null, false];
  node = await startRpcServer({
    eth_call: ([call]) => {
      if ((call as { to?: string }).to !== undefined) return answer;
      const word = (value: bigint) => value.toString(16).padStart(64, '0');
      const flags = 1n | (hasCode ? 4n : 0n);
      return `0x${word(2000n)}${word((500n << 8n) | flags)}`;
    },
  });
  chain = openClient({ rpcUrls: [node.url], chainId: 5042, timeoutMs: 30_000 });
  clock = createManualClock(1_800_000_000_000);
  const checked = createSignatureCheck({
    check: createChainCheck(chain, USDC, () => USDC, clock),
    digestOf: (authorization) =>
      authorizationDigest(authorization, domainSeparator('USDC', '2', 5042, hexToBytes(USDC))),
    status: { refusesCode: () => codeRefused },
    ledger: { hasSettled: async () => hasPaid },
    contracts: createContractBudget(clock),
  });
  check = async (authorization, client = 'client', hasFailed = false) => {
    const asker = { client, hasFailed, signal: new AbortController().signal };
    const end = checked({ payment: signedPayment(authorization), asker } as Sale);
    // Awaited below; the clock must go on first, by the moment in which others may join the read.
    end.catch(() => {});
    await clock.advance(4);
    return end;
  };
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

const signed = () => signAuthorization(newKey().privateKey, requirement);
/** Signed by another key than the payer's. */
const foreign = () => ({ ...signed(), from: hexToBytes(newKey().address) });
/** How often a payer's contract was asked, and how often the payers were read. */
const contracts = () => calls().filter(({ to }) => to !== undefined).length;
const reads = () => calls().filter(({ to }) => to === undefined).length;
const calls = () =>
  (node.bodies.flat() as { method: string; params: [{ to?: string }] }[])
    .filter(({ method }) => method === 'eth_call')
    .map(({ params }) => params[0]);

test('a key’s own signature passes, and the chain is asked nothing', async () => {
  await check(signed());
  expect(node.bodies).toEqual([]);
});

describe('a signature that is not the payer’s own', () => {
  test('of a payer without code is refused after one shared read: there is no contract to ask', async () => {
    answer = MAGIC;
    await expect(check(foreign())).rejects.toMatchObject(REFUSED);
    expect([reads(), contracts()]).toEqual([1, 0]);
  });

  test('of a hundred payers without code at once costs one request, and asks no contract', async () => {
    const word = (value: bigint) => value.toString(16).padStart(64, '0');
    node.methods.eth_call = () => `0x${[2000n, ...Array<bigint>(100).fill((500n << 8n) | 1n)].map(word).join('')}`;
    const checks = Array.from({ length: 100 }, (_, at) => check(foreign(), `client ${at}`).catch((error) => error));
    for (const end of await Promise.all(checks)) expect(end).toMatchObject(REFUSED);
    expect([reads(), contracts()]).toEqual([1, 0]);
  });

  test('of a payer with code is what its contract says of it', async () => {
    hasCode = true;
    answer = MAGIC;
    await check(foreign());
    answer = NO;
    await expect(check(foreign())).rejects.toMatchObject(REFUSED);
    expect([reads(), contracts()]).toEqual([2, 2]);
  });

  test('that no key could have made is the contract’s to judge as well', async () => {
    hasCode = true;
    answer = MAGIC;
    await check({ ...signed(), signature: Buffer.alloc(200, 7) });
    expect(contracts()).toBe(1);
  });

  test('of a payer with code asks nothing while such payers are not settled for', async () => {
    [hasCode, answer, codeRefused] = [true, MAGIC, 'the budget is used up'];
    await expect(check(foreign())).rejects.toMatchObject({
      status: 503,
      code: 'settlement_unavailable',
      retryAfterSeconds: 3600,
      message: expect.stringContaining('the budget is used up'),
    });
    expect(contracts()).toBe(0);
    // A plain account hears of its signature.
    hasCode = false;
    await expect(check(foreign())).rejects.toMatchObject(REFUSED);
  });
});

describe('contracts that are asked for their signature', () => {
  test('are eight a minute for a client, and so many for all that a dozen clients leave some', async () => {
    [hasCode, answer] = [true, MAGIC];
    const ends: unknown[] = [];
    for (let at = 0; at < 10; at++) ends.push(await check(foreign(), 'greedy').catch(({ code }) => code));
    expect(ends.slice(8)).toEqual(['contract_signatures', 'contract_signatures']);
    for (let client = 1; client < 12; client++)
      for (let at = 0; at < 8; at++) await check(foreign(), `greedy ${client}`).catch(() => {});
    await check(foreign(), 'late');
    expect(contracts()).toBe(97);
  });

  test('are asked for payers that have paid before, whatever third parties have used up', async () => {
    [hasCode, answer] = [true, MAGIC];
    for (let client = 0; client < 60; client++)
      for (let at = 0; at < 5; at++) await check(foreign(), `greedy ${client}`).catch(() => {});
    await expect(check(foreign(), 'late')).rejects.toMatchObject({ code: 'contract_signatures' });
    hasPaid = true;
    await check(foreign(), 'late');
  });

  test('are kept for payers that have paid before, although anyone can name such a payer in a payment', async () => {
    [hasCode, hasPaid] = [true, true];
    // Each request of a client comes before the failure of its first one is noted; then all come after it.
    for (let client = 0; client < 14; client++)
      for (let at = 0; at < 30; at++) await check(foreign(), `greedy ${client}`).catch(() => {});
    for (let client = 0; client < 60; client++)
      for (let at = 0; at < 9; at++) await check(foreign(), `failed ${client}`, true).catch(() => {});
    answer = MAGIC;
    await expect(check(foreign(), 'failed late', true)).rejects.toMatchObject({ code: 'contract_signatures' });
    for (let at = 0; at < 2; at++) await check(foreign(), 'late');
  });

  test('are twelve a minute for a client whose payer has paid before', async () => {
    [hasCode, answer, hasPaid] = [true, MAGIC, true];
    for (let at = 0; at < 12; at++) await check(foreign(), 'customer');
    await expect(check(foreign(), 'customer')).rejects.toMatchObject({ code: 'contract_signatures' });
  });

  test('are asked for a refused client again when the minute is over, which the refusal names', async () => {
    [hasCode, answer] = [true, MAGIC];
    for (let at = 0; at < 8; at++) await check(foreign(), 'greedy');
    await expect(check(foreign(), 'greedy')).rejects.toMatchObject({
      status: 429,
      code: 'contract_signatures',
      retryAfterSeconds: 60,
    });
    await clock.advance(60_000);
    await check(foreign(), 'greedy');
    expect(contracts()).toBe(9);
  });
});

test('a settler that refuses no code lets accounts with code pass', () => {
  checkCodeTaken({ refusesCode: () => null });
  expect(() => checkCodeTaken({ refusesCode: () => 'no' })).toThrow('cannot be settled now: no');
});
