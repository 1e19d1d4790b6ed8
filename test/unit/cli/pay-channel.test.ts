import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BatchSettlementEvmScheme, computeChannelId } from '@x402/evm/batch-settlement/client';
import { FileClientChannelStorage } from '@x402/evm/batch-settlement/client/file-storage';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { sellerOf } from '../../../cli/seller.ts';
import { payByChannel, refundChannel } from '../../../cli/ways/channel.ts';
import { readChannelOffer } from '../../../cli/ways/channel-offer.ts';
import { createAccount } from '../../../dev/network.ts';
import { type Answered, startStandIn } from '../../support/upstream/http-stand-in.ts';

// What a seller that answers with a 402 of its own making can do to a buyer's channels.

const KEY = `0x${'11'.repeat(32)}` as const;
const ARC = { network: 'eip155:5042', asset: '0x3600000000000000000000000000000000000000' } as const;
const BASE = { network: 'eip155:8453', asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' } as const;
const STALE = 'invalid_batch_settlement_evm_cumulative_amount_mismatch';

interface Rpc {
  readonly id: number;
  readonly method: string;
}

interface Signed {
  readonly voucher: { readonly maxClaimableAmount: string; readonly signature: string };
  readonly deposit?: { readonly authorization: { readonly erc3009Authorization: { readonly validBefore: string } } };
}

type Entry = ReturnType<typeof entryOf>;

/** An entry that is paid over a channel with the seller at this address, 0.01 USDC a call. */
function entryOf(on: typeof ARC | typeof BASE, { address }: { address: string }, more: object = {}) {
  const extra = {
    name: 'USDC',
    version: '2',
    receiverAuthorizer: address,
    withdrawDelay: 86_400,
    minDeposit: '20000',
    ...more,
  };
  return { ...on, scheme: 'batch-settlement', amount: '10000', payTo: address, maxTimeoutSeconds: 600, extra };
}

/** A provider of Arc on which every channel holds `balance` and nothing of it is claimed. */
const startRpc = () =>
  startStandIn(async ({ body }) => {
    const channel = `0x${balance.toString(16).padStart(64, '0')}${'0'.repeat(64)}`;
    const answer = ({ id, method }: Rpc) => ({
      jsonrpc: '2.0',
      id,
      result: method === 'eth_chainId' ? '0x13b2' : channel,
    });
    return { json: Array.isArray(body) ? body.map(answer) : answer(body as Rpc) };
  });

let rpc: Awaited<ReturnType<typeof startRpc>>;
let directory: string;
let seller: Awaited<ReturnType<typeof startStandIn>>;
let signed: Signed[];
let balance: bigint;
beforeAll(async () => {
  rpc = await startRpc();
});
afterAll(() => rpc.stop());
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'percall-pay-channel-'));
  [signed, balance] = [[], 0n];
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** The header of a 402 with one entry. */
const demand = (entry: Entry, more: object = {}): string =>
  btoa(JSON.stringify({ x402Version: 2, resource: { url: 'http://127.0.0.1/' }, accepts: [entry], ...more }));

/** Starts a seller for the rest of the test. It answers each payment as `answerTo` says, and a request without one with `offered`. */
async function startSeller(offered: Entry, answerTo: (payment: Signed) => NonNullable<Answered> & { status: number }) {
  seller = await startStandIn(async ({ headers }) => {
    const shown = headers['payment-signature'];
    if (!shown) return { status: 402, json: {}, headers: { 'payment-required': demand(offered) } };
    const { payload } = JSON.parse(atob(String(shown))) as { payload: Signed };
    signed.push(payload);
    return { json: {}, ...answerTo(payload) };
  });
  onTestFinished(() => seller.stop());
}

/** A 402 of the reason that the voucher is stale. */
const stale = (...entries: [Entry, ...Entry[]]) => ({
  status: 402,
  headers: { 'payment-required': demand(entries[0], { error: STALE, accepts: entries }) },
});
const terms = (rpcUrl: string | null = rpc.url) => ({ privateKey: KEY, directory, maxDeposit: 1_000_000n, rpcUrl });
/** Pays an offer to the seller. Resolves with the answer, or the command's error. */
const payOffer = (offered: Entry, at = terms()): Promise<string> => {
  const asked = sellerOf({ kind: 'http', method: 'GET', url: new URL(seller.url), body: null });
  // Nothing is counted here: wallet.test.ts does that.
  const book = { kept: null, count: () => {}, countDeposit: () => {}, keep: () => {} };
  const presenting = { say: () => {}, delay: async () => {}, book };
  return payByChannel(asked, readChannelOffer(demand(offered))!, at, presenting).then(
    ({ reply }) => reply.body.toString(),
    String,
  );
};

/** The same to a seller that answers every payment with a 402 of this entry. */
async function pay(offered: Entry, answered: Entry): Promise<string> {
  await startSeller(offered, () => stale(answered));
  return payOffer(offered);
}

const storage = () => new FileClientChannelStorage({ directory });
type ChannelRecord = Parameters<ReturnType<typeof storage>['set']>[1];

/** Writes the buyer's record of the channel of this entry, and resolves with its id. */
async function keep(entry: Entry, record: object): Promise<string> {
  const scheme = new BatchSettlementEvmScheme(privateKeyToAccount(KEY), { storage: storage() });
  const id = computeChannelId(scheme.buildChannelConfig(entry), entry.network);
  await storage().set(id, record as ChannelRecord);
  return id;
}

const RICH = { balance: '1000000', chargedCumulativeAmount: '250000', totalClaimed: '0' };
const untilOf = ({ deposit }: Signed): string => deposit!.authorization.erc3009Authorization.validBefore;

test('a 402 that names another seller’s channel leaves the record of that channel as it was', async () => {
  const others = entryOf(BASE, createAccount());
  const id = await keep(others, RICH);
  expect(await pay(entryOf(ARC, createAccount()), others)).toContain(STALE);
  expect(await storage().get(id)).toMatchObject(RICH);
  expect(signed).toHaveLength(1);
});

test('a correction counts also where the seller puts it on an entry with another way to deposit', async () => {
  const account = createAccount();
  const [offered, permit] = [entryOf(ARC, account), entryOf(ARC, account, { assetTransferMethod: 'permit2' })];
  // The buyer has signed 50000 before, from another device.
  balance = 1_000_000n;
  await keep(offered, { ...RICH, chargedCumulativeAmount: '40000' });
  await startSeller(offered, () => ({ status: 400 }));
  await payOffer(offered);
  const { maxClaimableAmount: max, signature } = signed[0]!.voucher;
  expect(max).toBe('50000');
  await seller.stop();
  await keep(offered, { ...RICH, chargedCumulativeAmount: '20000' });
  signed = [];
  const channelState = { balance: '1000000', totalClaimed: '0', chargedCumulativeAmount: max };
  const proven = {
    ...permit,
    extra: { ...permit.extra, channelState, voucherState: { signedMaxClaimable: max, signature } },
  };
  await startSeller(offered, ({ voucher }) =>
    voucher.maxClaimableAmount === '60000' ? { status: 200 } : stale(proven, offered),
  );
  expect(await payOffer(offered)).toBe('{}');
  expect(signed.map(({ voucher }) => voucher.maxClaimableAmount)).toEqual(['30000', '60000']);
});

/** An answer to a payment with its receipt. `made` is the transaction of its deposit, if it has one. */
const sold = ({ voucher }: Signed, made = '') => {
  const channelState = { ...RICH, chargedCumulativeAmount: voucher.maxClaimableAmount };
  const extra = { chargedAmount: '10000', channelState };
  const receipt = { success: true, transaction: made, network: ARC.network, amount: '10000', extra };
  return { status: 200, headers: { 'payment-response': btoa(JSON.stringify(receipt)) }, json: { answer: 42 } };
};

const MADE = `0x${'ab'.repeat(32)}`;

/** The entry with the proof that this payment's voucher is charged. */
const proven = (entry: Entry, { voucher: { maxClaimableAmount: max, signature } }: Signed): Entry => {
  const proof = {
    channelState: { chargedCumulativeAmount: max },
    voucherState: { signedMaxClaimable: max, signature },
  };
  return { ...entry, extra: { ...entry.extra, ...proof } };
};

test('an answer that is cut off is asked for again with the same voucher', async () => {
  const entry = entryOf(ARC, createAccount());
  const id = await keep(entry, RICH);
  await startSeller(entry, (payment) => ({ ...sold(payment), isCutOff: signed.length === 1 }));
  expect(await payOffer(entry)).toBe('{"answer":42}');
  expect(signed.map(({ voucher }) => voucher.maxClaimableAmount)).toEqual(['260000', '260000']);
  expect(await storage().get(id)).toMatchObject({ ...RICH, chargedCumulativeAmount: '260000' });
});

test('after answers that were all cut off, the next call signs the same voucher again', async () => {
  const entry = entryOf(ARC, createAccount());
  const id = await keep(entry, RICH);
  await startSeller(entry, (payment) => ({ ...sold(payment), isCutOff: signed.length <= 3 }));
  expect(await payOffer(entry)).toContain(
    'the answer was cut off; whether this call is charged is open. Repeat the same',
  );
  expect(await storage().get(id)).toMatchObject(RICH);
  expect(await payOffer(entry)).toBe('{"answer":42}');
  expect(signed.map(({ voucher }) => voucher.maxClaimableAmount)).toEqual(Array(4).fill('260000'));
});

test('a deposit that is made by an answer which was cut off is not made again, and its voucher is not paid again', async () => {
  const entry = entryOf(ARC, createAccount());
  await startSeller(entry, (payment) => ({
    ...sold(payment, payment.deposit && MADE),
    isCutOff: signed.length <= 3,
  }));
  const told = await payOffer(entry);
  expect(told).toContain(`the answer was cut off; by its receipt the deposit is made, transaction ${MADE}`);
  expect(told).not.toContain('is made is open');
  expect(await payOffer(entry)).toBe('{"answer":42}');
  expect(signed.map(({ deposit }) => deposit !== undefined)).toEqual([true, true, true, false]);
  expect(new Set(signed.map(({ voucher }) => voucher.maxClaimableAmount))).toEqual(new Set(['10000']));
});

test('a voucher that is refused after its answer was cut off may be charged: it alone is signed, also by the next call', async () => {
  const entry = entryOf(ARC, createAccount());
  const id = await keep(entry, RICH);
  await startSeller(entry, (payment) => {
    if (signed.length === 1) return { ...sold(payment), isCutOff: true };
    if (signed.length === 2) return { ...sold(payment), ...stale(proven(entry, payment)) };
    return sold(payment);
  });
  balance = 1_000_000n;
  const told = await payOffer(entry);
  expect(told).toContain(
    `${STALE}; an earlier answer was cut off; whether this call is charged is open. Repeat the same`,
  );
  expect(await storage().get(id)).toMatchObject(RICH);
  expect(await payOffer(entry)).toBe('{"answer":42}');
  expect(signed.map(({ voucher }) => voucher.maxClaimableAmount)).toEqual(Array(3).fill('260000'));
});

test('a deposit of an answer that was cut off is noted also when the voucher is refused after it', async () => {
  const entry = entryOf(ARC, createAccount());
  const id = await keep(entry, { balance: '255000', chargedCumulativeAmount: '250000', totalClaimed: '0' });
  await startSeller(entry, (payment) =>
    signed.length === 1 ? { ...sold(payment, MADE), isCutOff: true } : { status: 500 },
  );
  const told = await payOffer(entry);
  expect(told).toContain('status 500');
  expect(told).toContain(`by its receipt the deposit is made, transaction ${MADE}`);
  expect(await storage().get(id)).toEqual({
    balance: '275000',
    chargedCumulativeAmount: '250000',
    totalClaimed: '0',
  });
});

test.each([503, 0])(
  'after %i each time, the next call signs the same voucher again, and the buyer is told so',
  async (status) => {
    const entry = entryOf(ARC, createAccount());
    const id = await keep(entry, RICH);
    await startSeller(entry, (payment) => (signed.length <= 6 ? { status, isBroken: status === 0 } : sold(payment)));
    expect(await payOffer(entry)).toContain('whether this call is charged is open. Repeat the same command');
    expect(await storage().get(id)).toMatchObject(RICH);
    expect(await payOffer(entry)).toBe('{"answer":42}');
    expect(signed.map(({ voucher }) => voucher.maxClaimableAmount)).toEqual(Array(7).fill('260000'));
  },
);

test('the deposits of one command are at most the ceiling together', async () => {
  const entry = entryOf(ARC, createAccount(), { minDeposit: '600000' });
  await keep(entry, { balance: '10000', chargedCumulativeAmount: '5000', totalClaimed: '0' });
  await startSeller(entry, () => stale(entry));
  const told = await payOffer(entry);
  expect(told).toContain('a deposit of 0.6 USDC after 0.6 USDC is above the ceiling of 1 USDC');
  expect(told).toContain(`is made is open until ${untilOf(signed[0]!)}`);
  expect(signed).toHaveLength(1);
});

test('a channel whose withdrawal delay is no number is not paid', () => {
  const entry = entryOf(ARC, createAccount());
  expect(readChannelOffer(demand(entry))).not.toBeNull();
  expect(readChannelOffer(demand({ ...entry, extra: { ...entry.extra, withdrawDelay: '86400' as never } }))).toBeNull();
});

test('a deposit without a transaction in the receipt is not taken for made', async () => {
  const entry = entryOf(ARC, createAccount());
  const id = await keep(entry, { balance: '255000', chargedCumulativeAmount: '250000', totalClaimed: '0' });
  await startSeller(entry, (payment) => ({ ...sold(payment, ''), isCutOff: true }));
  expect(await payOffer(entry)).toContain('is made is open until');
  expect(await storage().get(id)).toMatchObject({ balance: '255000' });
});

test('a refusal whose body is cut off counts by its headers', async () => {
  const entry = entryOf(ARC, createAccount());
  await keep(entry, RICH);
  await startSeller(entry, () => ({ ...stale(entry), text: 'half', isCutOff: true }));
  expect(await payOffer(entry)).toContain(STALE);
  // The correction, from the chain, is in the headers too.
  expect(signed.map(({ voucher }) => voucher.maxClaimableAmount)).toEqual(['260000', '10000']);
});

test('a seller that refuses a deposit holds it still, and the buyer is told until when', async () => {
  const entry = entryOf(ARC, createAccount());
  const told = await pay(entry, entry);
  expect(told).toContain(`${STALE}; whether the deposit of 0.02 USDC is made is open until ${untilOf(signed[0]!)}`);
  expect(told).not.toContain('missing or old');
});

test('a deposit that was corrected away is told of when the voucher after it is refused', async () => {
  const entry = entryOf(ARC, createAccount());
  await keep(entry, { balance: '10000', chargedCumulativeAmount: '5000', totalClaimed: '0' });
  await startSeller(entry, () => {
    // Made by another device, since the record was read.
    balance = 500_000n;
    return signed.length === 1 ? stale(entry) : { status: 400 };
  });
  const told = await payOffer(entry);
  expect(signed.map(({ deposit }) => deposit !== undefined)).toEqual([true, false]);
  expect(told).toContain('status 400');
  expect(told).toContain(`is made is open until ${untilOf(signed[0]!)}`);
});

test('a deposit is told of when the seller claims that its own voucher is charged, and that a repeat may pay again', async () => {
  const entry = entryOf(ARC, createAccount());
  await startSeller(entry, (payment) => stale(proven(entry, payment)));
  const told = await payOffer(entry);
  expect(told).toContain('nothing more was signed');
  expect(told).toContain('Repeating the command may pay again');
  expect(told).not.toContain('Then repeat the command');
  expect(told).toContain(`is made is open until ${untilOf(signed[0]!)}`);
  expect(signed).toHaveLength(1);
});

test('a voucher that is claimed to be charged after a correction is not followed by another', async () => {
  const entry = entryOf(ARC, createAccount());
  balance = 1_000_000n;
  await keep(entry, { ...RICH, chargedCumulativeAmount: '0' });
  await startSeller(entry, (payment) => stale(signed.length === 1 ? entry : proven(entry, payment)));
  expect(await payOffer(entry)).toContain('nothing more was signed');
  expect(signed.map(({ voucher }) => voucher.maxClaimableAmount)).toEqual(['10000', '10000']);
});

test('a first voucher that is claimed to be charged after a correction is not paid again', async () => {
  const entry = entryOf(ARC, createAccount());
  balance = 1_000_000n;
  await keep(entry, { ...RICH, chargedCumulativeAmount: '50000' });
  await startSeller(entry, () => stale(signed.length === 1 ? entry : proven(entry, signed[0]!)));
  expect(await payOffer(entry)).toContain('nothing more was signed. If another device has bought');
  expect(signed.map(({ voucher }) => voucher.maxClaimableAmount)).toEqual(['60000', '10000']);
});

test('a buyer who cannot read the chain gets on by the receipt of a stale voucher, and is told what is charged', async () => {
  const entry = entryOf(ARC, createAccount());
  const id = await keep(entry, RICH);
  await startSeller(entry, (payment) => ({
    ...sold(payment),
    ...(signed.length === 1 && withReceipt(entry, payment)),
  }));
  const pay = () => payOffer(entry, terms(null));
  expect(await pay()).toContain('by its receipt 0.01 USDC is charged');
  expect(await storage().get(id)).toMatchObject({ chargedCumulativeAmount: '260000' });
  expect(await pay()).toBe('{"answer":42}');
  expect(signed.map(({ voucher }) => voucher.maxClaimableAmount)).toEqual(['260000', '270000']);
});

/** The 402 of a stale voucher with the receipt of the sale that it has bought. */
function withReceipt(entry: Entry, payment: Signed) {
  const { headers } = stale(entry);
  return { status: 402, headers: { ...headers, ...sold(payment).headers } };
}

test('the receipt of a refusal does not move the record, so the next call signs the same voucher', async () => {
  const entry = entryOf(ARC, createAccount());
  const id = await keep(entry, RICH);
  const refusal = { status: 500, json: { detail: 'the source failed', charged: false } };
  await startSeller(entry, (payment) => ({ ...sold(payment), ...(signed.length < 3 && refusal) }));
  expect(await payOffer(entry)).toContain('status 500: the source failed (the seller says: not charged)');
  expect(await payOffer(entry)).toContain('status 500');
  expect(await storage().get(id)).toMatchObject(RICH);
  expect(await payOffer(entry)).toBe('{"answer":42}');
  expect(signed.map(({ voucher }) => voucher.maxClaimableAmount)).toEqual(Array(3).fill('260000'));
});

test('a voucher whose answer is gone is told to be charged, and the record moves on', async () => {
  const entry = entryOf(ARC, createAccount());
  const id = await keep(entry, RICH);
  await startSeller(entry, (payment) => ({ ...sold(payment), status: 410, json: { detail: 'its answer is gone' } }));
  const told = await payOffer(entry);
  expect(told).toContain(
    'status 410: its answer is gone; by its receipt 0.01 USDC is charged. Repeating the command may pay again',
  );
  expect(await storage().get(id)).toMatchObject({ chargedCumulativeAmount: '260000' });
});

test('a deposit whose answer is gone is told to be made, and not to be open', async () => {
  const entry = entryOf(ARC, createAccount());
  const id = await keep(entry, { balance: '255000', chargedCumulativeAmount: '250000', totalClaimed: '0' });
  await startSeller(entry, (payment) => ({ ...sold(payment, MADE), status: 410, json: { detail: 'gone' } }));
  const told = await payOffer(entry);
  expect(told).toMatch(/status 410: gone; by its receipt 0.01 USDC is charged. Repeating the command may pay again$/);
  expect(await storage().get(id)).toMatchObject({ balance: '275000', chargedCumulativeAmount: '260000' });
});

test('a deposit that was made unheard is read from the chain before another is signed', async () => {
  const entry = entryOf(ARC, createAccount());
  const id = await keep(entry, { balance: '255000', chargedCumulativeAmount: '250000', totalClaimed: '0' });
  balance = 275_000n;
  await startSeller(entry, (payment) => sold(payment));
  expect(await payOffer(entry)).toBe('{"answer":42}');
  expect(signed.map(({ deposit }) => deposit)).toEqual([undefined]);
  expect(await storage().get(id)).toMatchObject({ balance: '275000', chargedCumulativeAmount: '260000' });
});

test('a provider that lags behind does not take a noted deposit away', async () => {
  const entry = entryOf(ARC, createAccount());
  const id = await keep(entry, RICH);
  balance = 10_000n;
  await startSeller(entry, (payment) => sold(payment));
  expect(await payOffer(entry)).toBe('{"answer":42}');
  expect(signed.map(({ deposit }) => deposit)).toEqual([undefined]);
  expect(await storage().get(id)).toMatchObject({ balance: '1000000' });
});

test('a made deposit is noted also where its receipt states other charges than the record', async () => {
  const entry = entryOf(ARC, createAccount());
  const id = await keep(entry, { balance: '255000', chargedCumulativeAmount: '250000', totalClaimed: '0' });
  const channelState = { ...RICH, chargedCumulativeAmount: '7' };
  const receipt = {
    success: true,
    transaction: MADE,
    network: ARC.network,
    extra: { chargedAmount: '1', channelState },
  };
  const headers = { 'payment-response': btoa(JSON.stringify(receipt)) };
  await startSeller(entry, () => ({ status: 200, json: { answer: 42 }, headers }));
  expect(await payOffer(entry)).toBe('{"answer":42}');
  expect(await storage().get(id)).toMatchObject({ balance: '275000', chargedCumulativeAmount: '250000' });
});

test('a receipt with an object where a text belongs does not cost the answer', async () => {
  const entry = entryOf(ARC, createAccount());
  await keep(entry, RICH);
  const receipt = { success: true, transaction: { toString: 1 }, errorReason: { toString: 1 }, network: ARC.network };
  const headers = { 'payment-response': btoa(JSON.stringify(receipt)) };
  await startSeller(entry, () => ({ status: 200, json: { answer: 42 }, headers }));
  expect(await payOffer(entry)).toBe('{"answer":42}');
});

describe('the record of a channel after a refund', () => {
  const said: string[] = [];
  const own = entryOf(ARC, createAccount());
  let id: string;
  beforeEach(async () => {
    said.length = 0;
    id = await keep(own, { ...RICH, balance: '50000', chargedCumulativeAmount: '10000' });
  });
  const refund = () =>
    refundChannel(new URL(seller.url), readChannelOffer(demand(own))!, terms(), (line) => said.push(line));
  const refunded = (amount: string | undefined, status = 200) => {
    const receipt = { success: true, transaction: MADE, network: ARC.network, amount };
    return {
      status,
      json: { detail: 'cannot refund' },
      headers: { 'payment-response': btoa(JSON.stringify(receipt)) },
    };
  };

  test('has nothing left, and its charges, when the seller’s receipt names all that was left', async () => {
    await startSeller(own, () => refunded('40000'));
    await refund();
    expect(await storage().get(id)).toMatchObject({ balance: '10000', chargedCumulativeAmount: '10000' });
    expect(said).toEqual([
      `left:    0.04 USDC in channel ${id}`,
      `refund:  0.04 USDC, transaction ${MADE}, by the seller's receipt`,
    ]);
  });

  test.each([['1'], [undefined]])(
    'stays when the receipt names %s base units, and the buyer is told',
    async (amount) => {
      await startSeller(own, () => refunded(amount));
      await refund();
      expect(await storage().get(id)).toMatchObject({ balance: '50000', chargedCumulativeAmount: '10000' });
      expect(said.at(-1)).toContain('so the record of the channel stays as it was');
    },
  );

  test('stays when the receipt says that nothing was refunded', async () => {
    const receipt = { success: false, errorReason: 'no balance', transaction: MADE, network: ARC.network };
    await startSeller(own, () => ({ status: 200, headers: { 'payment-response': btoa(JSON.stringify(receipt)) } }));
    await expect(refund()).rejects.toThrow('no balance');
    expect(await storage().get(id)).toMatchObject({ balance: '50000' });
  });

  test('stays when a refusal has such a receipt', async () => {
    await startSeller(own, () => refunded('40000', 500));
    await expect(refund()).rejects.toThrow('status 500: cannot refund');
    expect(await storage().get(id)).toMatchObject({ balance: '50000' });
  });

  test('stays when no answer comes, and the buyer is told that the refund may be under way', async () => {
    await startSeller(own, () => ({ ...refunded('40000'), isBroken: true }));
    await expect(refund()).rejects.toThrow('no answer; ask again later, the refund may be under way');
    expect(await storage().get(id)).toMatchObject({ balance: '50000' });
  });
});

test.each(['the demand', 'the correction'])(
  'a refund signs nothing for another seller’s channel that %s names, and leaves its record',
  async (where) => {
    const [own, others] = [entryOf(ARC, createAccount()), entryOf(ARC, createAccount())];
    await keep(own, { ...RICH, balance: '50000', chargedCumulativeAmount: '10000' });
    const id = await keep(others, RICH);
    await startSeller(where === 'the demand' ? others : own, () => stale(others));
    const refund = refundChannel(new URL(seller.url), readChannelOffer(demand(own))!, terms(), () => {});
    await expect(refund).rejects.toThrow('another channel than the one of its offer');
    expect(await storage().get(id)).toMatchObject(RICH);
    expect(signed).toHaveLength(where === 'the demand' ? 0 : 1);
  },
);
