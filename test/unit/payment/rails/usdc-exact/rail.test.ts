import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createChainClient, type OpenChainClient } from '../../../../../src/chain/rpc/client.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import type { PurchaseRail } from '../../../../../src/payment/rail.ts';
import type { Authorization, Found } from '../../../../../src/payment/settler.ts';
import { hashAuthorization } from '../../../../../src/payment/usdc/authorization.ts';
import { createChainCheck } from '../../../../../src/payment/usdc/checks.ts';
import { createEvidence } from '../../../../../src/payment/usdc/evidence.ts';
import { createExactRail } from '../../../../../src/payment/usdc/exact.ts';
import type { Payment, PaymentKey } from '../../../../../src/store/ports/payments.ts';
import { RpcFault } from '../../../../support/chain/rpc-server.ts';
import { reservation } from '../../../../support/ledger/ledger-rows.ts';
import { createManualClock, type ManualClock } from '../../../../support/manual-clock.ts';
import {
  newKey,
  payloadOf,
  plainRequirement,
  type Requirement,
  signAuthorization,
  signedPayment,
  USDC,
} from '../../../../support/usdc/payments.ts';
import { randomAuthorization, startTokenNode, type TokenNode } from '../../../../support/usdc/token-node.ts';

const NETWORK = 'eip155:5042';
/** The contracts whose payments share the payer's balance. */
const SHARING = [Buffer.alloc(20, 1), Buffer.alloc(20, 2)];
const asker = { client: 'c', hasFailed: false, signal: new AbortController().signal };
const INSUFFICIENT = { reason: 'invalid_exact_evm_insufficient_balance' };
const USED = { reason: 'invalid_exact_evm_nonce_already_used' };

let node: TokenNode;
let chain: OpenChainClient;
let clock: ManualClock;
let promised: bigint;
let asked: { key: PaymentKey; id: string; contracts: readonly Uint8Array[] | undefined }[];
let codeRefused: string | null;
/** The evidence's verdict instead of the node's; null leaves it to the node. */
let verdict: Found | null;
let lookups: number[];
/** How important each lookup is, and whether a payer that is read is known to have signed. */
let ranks: (string | undefined)[];
let signed: boolean[];
let rail: PurchaseRail;
beforeEach(async () => {
  node = await startTokenNode();
  node.server.methods.eth_gasPrice = () => '0x1';
  chain = createChainClient({ rpcUrls: [node.server.url], chainId: 5042, timeoutMs: 30_000 });
  clock = createManualClock(1_800_000_000_000);
  [promised, asked, codeRefused, verdict, lookups, ranks, signed] = [0n, [], null, null, [], [], []];
  const evidence = createEvidence(chain, USDC);
  const check = createChainCheck(chain, USDC, () => USDC);
  rail = createExactRail({
    isSoldAt: () => true,
    ledger: {
      openBefore: async (key, id, contracts) => {
        asked.push({ key, id, contracts });
        return promised;
      },
    },
    check: {
      ...check,
      admit: (authorization, client, isSigned) => {
        signed.push(isSigned);
        return check.admit(authorization, client, isSigned);
      },
    },
    evidence: {
      lookup: async (authorization, fromBlock, options) => {
        lookups.push(fromBlock);
        ranks.push(options?.rank);
        return verdict ?? evidence.lookup(authorization, fromBlock);
      },
    },
    balanceContracts: SHARING,
    status: { unavailable: () => null, refusesCode: () => codeRefused },
    checkSignature: async () => null,
    validity: { least: 21, most: 1000 },
    network: NETWORK,
    usdc: USDC,
    clock,
  });
});
afterEach(async () => {
  await chain.close();
  await node.server.stop();
});

/** Both looks, as a purchase takes them: the first before the reservation, the second after. */
const verify = async (authorization: Authorization, isAgain = false) => {
  const payment = signedPayment(authorization);
  const seen = await rail.readPayer(payment, asker, { signed: null, isAgain, price: 1n });
  return rail.verify('this one', payment, seen, { asker, isAgain, price: authorization.value });
};
const review = (authorization: Authorization, known = failedBefore(), mayLookUp = true) =>
  rail.review(signedPayment(authorization), known, { asker, mayLookUp: () => mayLookUp });
/** How often a payer was read. */
const reads = () => node.server.count('eth_getCode');
/** A row that had failed before, last seen unused at this block. */
const failedBefore = (checkedBlock: number | null = 7): Payment => ({
  ...reservation('before', 'before'),
  state: 'failed',
  signature: null,
  charged: null,
  payerHasCode: false,
  checkedBlock,
  transaction: null,
  block: null,
  reason: 'invalid_exact_evm_transaction_failed',
  endedAt: 1,
  deliveries: 0,
  deliveredAt: null,
  channel: null,
  calldata: null,
});

test('the plain rail has the token in the sale’s key, offers the plain entry, and settles through its settler', () => {
  expect(bytesToHex(rail.contract)).toBe(USDC);
  const requirement = { scheme: 'exact' } as Parameters<typeof rail.requirement>[0];
  expect(rail.requirement(requirement)).toBe(requirement);
  codeRefused = 'no';
  expect(rail.status.refusesCode?.()).toBe('no');
});

test('the plain rail reads what the payer signed, with a hash for this contract', () => {
  const authorization = randomAuthorization();
  const requirement = { scheme: 'exact', network: NETWORK } as Requirement;
  const { payload } = payloadOf(authorization, requirement);
  expect(rail.read(payload as never)).toEqual({
    kind: 'signed',
    authorization,
    authorizationHash: hashAuthorization(authorization, rail.contract),
  });
});

test('the plain rail reads payers whose signature was checked before payers of which nothing is known', async () => {
  const authorization = randomAuthorization();
  await verify(authorization);
  await review(authorization);
  expect(signed).toEqual([true, true]);
});

test('the plain rail accepts authorizations that outlast serving and settling, and none that is valid for too long', () => {
  const now = 1_800_000_000;
  const requirement = plainRequirement(`0x${'5e'.repeat(20)}`);
  const judge = (seconds: number) => () => {
    const authorization = signAuthorization(newKey().privateKey, requirement, { validBefore: BigInt(now + seconds) });
    rail.check(signedPayment(authorization), requirement as never, now);
  };
  for (const seconds of [21, 1000]) judge(seconds)();
  for (const seconds of [20, 1001]) expect(judge(seconds)).toThrow(/valid_before/);
});

describe('an unused authorization', () => {
  test('passes with the block at which it was read, less the blocks by which providers may differ', async () => {
    node.server.methods.eth_getBlockByNumber = () => ({ number: '0x7d0', timestamp: '0x1' });
    expect(await verify(randomAuthorization())).toEqual({ checkedBlock: 800, hasCode: false });
  });

  test.each([
    ['exactly the price', 1000n, 0n, true],
    ['a unit less than the price', 999n, 0n, false],
    ['the price and what was promised before', 1700n, 700n, true],
    ['a unit less than the price and what was promised before', 1699n, 700n, false],
  ])('of a payer that holds %s is judged by it', async (_, balance, before, isTaken) => {
    node.balanceAt = () => balance;
    promised = before;
    const authorization = randomAuthorization();
    const end = verify(authorization);
    if (isTaken) await end;
    else await expect(end).rejects.toMatchObject(INSUFFICIENT);
    const key = { network: NETWORK, contract: rail.contract, payer: authorization.from, nonce: authorization.nonce };
    // What has not even the price alone is refused before the ledger is asked for anything.
    expect(asked).toEqual(balance < authorization.value ? [] : [{ key, id: 'this one', contracts: SHARING }]);
  });

  test('is checked once, where its signature was checked by the payer’s code before', async () => {
    const authorization = randomAuthorization();
    const seen = await rail.readPayer(signedPayment(authorization), asker, { signed: null, isAgain: false, price: 1n });
    expect(
      await rail.readPayer(signedPayment(authorization), asker, { signed: seen, isAgain: false, price: 1n }),
    ).toEqual(seen);
    expect(reads()).toBe(1);
  });
});

describe('a payer that was just found to hold too little', () => {
  const poor = randomAuthorization();
  const again = () => ({ ...randomAuthorization(), from: poor.from });

  test('is not read again for three seconds', async () => {
    node.balanceAt = () => 999n;
    await expect(verify(poor)).rejects.toMatchObject(INSUFFICIENT);
    expect(reads()).toBe(1);
    await clock.advance(1500);
    // What it holds by now is not known: it may be enough.
    await expect(verify(again())).rejects.toMatchObject({
      status: 429,
      code: 'payer_short_of_funds',
      retryAfterSeconds: 2,
      charged: false,
    });
    await clock.advance(1499);
    await expect(verify(again())).rejects.toMatchObject({ retryAfterSeconds: 1 });
    expect([reads(), asked.length]).toEqual([1, 0]);
    node.balanceAt = () => 1000n;
    await clock.advance(1);
    await verify(again());
    expect(reads()).toBe(2);
  });

  test('is read for an amount that it can pay, and another payer is read as usual', async () => {
    node.balanceAt = () => 999n;
    await expect(verify(poor)).rejects.toMatchObject(INSUFFICIENT);
    await verify({ ...again(), value: 999n });
    await expect(verify(randomAuthorization())).rejects.toMatchObject(INSUFFICIENT);
    expect(reads()).toBe(3);
  });

  test('is read again where only its open payments exceed the balance, because they can end at any moment', async () => {
    node.balanceAt = () => 1000n;
    promised = 1n;
    await expect(verify(poor)).rejects.toMatchObject(INSUFFICIENT);
    promised = 0n;
    await verify(again());
    expect(reads()).toBe(2);
  });
});

describe('a used authorization', () => {
  test('that is new here was spent elsewhere, is refused, and needs no evidence', async () => {
    const authorization = randomAuthorization();
    node.pay(authorization);
    await expect(verify(authorization)).rejects.toMatchObject(USED);
    expect([lookups, asked]).toEqual([[], []]);
  });

  test('that was found unused a moment ago has been sent by a third party since: nothing is known until it is reviewed', async () => {
    const authorization = randomAuthorization();
    node.pay(authorization);
    await expect(verify(authorization, true)).rejects.toMatchObject({ status: 503, code: 'settlement_unknown' });
  });
});

describe('a review of an authorization that reverted before', () => {
  test('finds it open while it is unused, by the shared read alone', async () => {
    expect(await review(randomAuthorization(), failedBefore(), false)).toEqual({ kind: 'open' });
    expect([reads(), lookups]).toEqual([1, []]);
  });

  test('finds it paid where a third party has sent it since, from the block of its first look on', async () => {
    const authorization = randomAuthorization();
    node.pay(authorization);
    expect(await review(authorization)).toMatchObject({ kind: 'settled', paid: 1000n });
    expect(await review(authorization, failedBefore(null))).toMatchObject({ kind: 'settled' });
    expect(lookups).toEqual([7, 0]);
    // Its payer is not verified now. So a lookup does not use what is kept for verified buyers, and comes before unverified payers.
    expect(ranks).toEqual(['collect', 'collect']);
  });

  test('finds that it was cancelled since', async () => {
    const authorization = randomAuthorization();
    node.cancel(authorization);
    expect(await review(authorization)).toEqual({ kind: 'failed', reason: USED.reason });
  });

  test('asks the evidence once it has run out, because it may have been used before that', async () => {
    verdict = { kind: 'failed', reason: 'run out' };
    expect(await review({ ...randomAuthorization(), validBefore: 1_800_000_000n })).toEqual(verdict);
    expect(await review({ ...randomAuthorization(), validBefore: 1_800_000_001n })).toEqual({ kind: 'open' });
  });

  test('knows nothing of a used one while the evidence may not be asked', async () => {
    const authorization = randomAuthorization();
    node.pay(authorization);
    expect(await review(authorization, failedBefore(), false)).toEqual({ kind: 'unknown' });
    expect(lookups).toEqual([]);
  });
});

describe('an account with code', () => {
  beforeEach(() => {
    node.server.methods.eth_getCode = () => '0x60';
  });
  const trials = () => node.server.count('eth_gasPrice');

  test('is simulated, and passes where the token accepts it', async () => {
    expect(await verify(randomAuthorization())).toMatchObject({ hasCode: true });
    expect(trials()).toBe(1);
  });

  test('is refused where its simulation reverts', async () => {
    const honest = node.server.methods.eth_call;
    node.server.methods.eth_call = (params) => {
      if ((params[0] as { gasPrice?: string }).gasPrice) throw new RpcFault(3, 'execution reverted');
      return honest?.(params);
    };
    await expect(verify(randomAuthorization())).rejects.toMatchObject({
      reason: 'invalid_exact_evm_transaction_simulation_failed',
    });
  });

  test('buys nothing while accounts with code are refused, and is not simulated', async () => {
    codeRefused = 'the budget is used up';
    await expect(verify(randomAuthorization())).rejects.toMatchObject({ status: 503, code: 'settlement_unavailable' });
    expect(trials()).toBe(0);
  });

  test('that holds too little is refused for that first, and is not simulated', async () => {
    node.balanceAt = () => 0n;
    await expect(verify(randomAuthorization())).rejects.toMatchObject(INSUFFICIENT);
    expect(trials()).toBe(0);
  });
});

test('a plain account still buys while accounts with code are refused, and is not simulated', async () => {
  codeRefused = 'the budget is used up';
  expect(await verify(randomAuthorization())).toMatchObject({ hasCode: false });
  expect(node.server.count('eth_gasPrice')).toBe(0);
});
