import { describe, expect, test } from 'vitest';
import { bytesToHex, hexToBytes } from '../../../../src/lib/hex.ts';
import { transferIdBytes } from '../../../../src/payment/settler.ts';
import { hashAuthorization } from '../../../../src/payment/usdc/authorization.ts';
import { gatewayExtra } from '../../../../src/payment/usdc/gateway.ts';
import { ANSWERED, openGatewaySale, SELLER, WALLET } from '../../../support/payment/usdc-world.ts';
import { signForGateway } from '../../../support/usdc/gateway-payment.ts';
import { newKey, plainRequirement, signAuthorization } from '../../../support/usdc/payments.ts';

// The rail `usdc-gateway`: what it refuses by itself, what it asks of the Gateway and in which order, and what it sells.

const POOR = { reason: 'insufficient_balance' };
const EXPIRED = { reason: 'invalid_exact_evm_payload_authorization_valid_before' };
const TOO_SHORT = { reason: 'authorization_validity_too_short' };
const UNKNOWN = { status: 503, code: 'settlement_unknown', charged: 'unknown' };
/** What is asked before the endpoint runs, of a payment that is new here. */
const CHECKED = ['balances', 'reserve', 'verify', 'transfers', 'run'];
const plain = plainRequirement(SELLER.address);

describe('a payment through the Gateway', () => {
  test('is sold after its checks, settled by a transfer, and kept with all that was signed, for the wallet', async () => {
    const { sell, pay, row, asked, gateway } = await openGatewaySale();
    const payment = pay({ deposit: 1000n });
    const { receipt, body } = await sell({}, payment);
    expect(body).toEqual(ANSWERED.body);
    // It was unused when it was handed over, and the evidence is its transfer.
    expect(asked).toEqual([...CHECKED, 'transfers', 'settle', 'transfers']);
    const [transfer] = gateway.transfers();
    expect(receipt).toMatchObject({ success: true, transaction: transfer?.id });
    const contract = hexToBytes(WALLET);
    expect(await row(payment)).toMatchObject({
      state: 'settled',
      contract: Buffer.from(contract),
      authorizationHash: hashAuthorization(payment.authorization, contract),
      transaction: transferIdBytes(transfer?.id ?? ''),
      block: 0,
      checkedBlock: 0,
      payerHasCode: false,
      charged: 1000n,
    });
  });

  test('is asked about as the API wants it, with the entry of the 402, and with the token', async () => {
    const { sell, pay, requests } = await openGatewaySale();
    const payment = pay();
    await sell({}, payment);
    const extra = { name: 'GatewayWalletBatched', version: '1', verifyingContract: WALLET };
    const [verified, reported] = [requests('/v1/x402/verify'), requests('/v1/balances')];
    expect(verified.map(({ body }) => body.paymentPayload)).toMatchObject([
      { x402Version: 2, accepted: { ...plain, extra } },
    ]);
    const depositor = bytesToHex(payment.authorization.from);
    expect(reported.map(({ method, body }) => [method, body])).toEqual([
      ['POST', { token: 'USDC', sources: [{ domain: 26, depositor }] }],
    ]);
    for (const { headers } of [...verified, ...reported]) expect(headers.authorization).toBe('Bearer gw-token');
  });

  test('buys nothing while its settler is not available; what that says of payers is no concern of this rail', async () => {
    const { sell, says, asked } = await openGatewaySale();
    says.unavailable = 'the queue itself';
    await expect(sell()).rejects.toMatchObject({
      status: 503,
      code: 'settlement_unavailable',
      message: expect.stringContaining('the queue itself'),
    });
    expect(asked).toEqual([]);
    Object.assign(says, { unavailable: undefined, payerRefused: 'banned', codeRefused: 'the budget is used up' });
    expect(await sell()).toMatchObject(ANSWERED);
  });

  test('must be signed under the domain of the Gateway’s wallet: no other signature reaches the Gateway', async () => {
    const { sell, pay, present, asked } = await openGatewaySale();
    const { privateKey } = newKey();
    const others = [
      signAuthorization(privateKey, plain),
      signForGateway(privateKey, plain, `0x${'78'.repeat(20)}`),
      signForGateway(privateKey, { ...plain, network: 'eip155:5042002' }, WALLET),
      { ...pay().authorization, value: 999n },
      { ...pay().authorization, signature: pay().authorization.signature },
    ];
    for (const other of others)
      await expect(sell({ price: other.value }, present(other))).rejects.toMatchObject({
        reason: 'invalid_exact_evm_signature',
      });
    expect(asked).toEqual([]);
  });

  test('must name the entry of the 402 as its terms, with the wallet that it is signed for', async () => {
    const { sell, pay, asked } = await openGatewaySale();
    const payment = pay();
    const elsewhere = { ...payment.accepted, extra: { ...gatewayExtra(`0x${'78'.repeat(20)}`) } };
    await expect(sell({}, { ...payment, accepted: elsewhere })).rejects.toMatchObject({
      reason: 'No matching payment requirements',
    });
    expect(asked).toEqual([]);
  });

  test('must have the price, and another payer than the seller, before the Gateway is asked', async () => {
    const { sell, pay, asked, present } = await openGatewaySale();
    await expect(sell({}, pay({ key: SELLER }))).rejects.toMatchObject({ reason: 'self_transfer' });
    const { authorization } = pay({ value: 999n });
    const dearer = { ...present(authorization), accepted: pay().accepted };
    await expect(sell({}, dearer)).rejects.toMatchObject({
      reason: 'invalid_exact_evm_payload_authorization_value_mismatch',
    });
    expect(asked).toEqual([]);
  });

  test.each([
    [10_000, 604_815],
    [10_001, 604_816],
    [0, 604_805],
  ])('must be valid for a week, a handler’s %i ms and five seconds', async (handlerTimeoutMs, least) => {
    const { sell, pay, clock, asked } = await openGatewaySale({ handlerTimeoutMs });
    const lasting = (seconds: number) => sell({}, pay({ validBefore: BigInt(Math.floor(clock.now / 1000) + seconds) }));
    await expect(lasting(least - 1)).rejects.toMatchObject(TOO_SHORT);
    expect(asked).toEqual([]);
    expect(await lasting(least)).toMatchObject(ANSWERED);
  });

  test('must not be valid for longer than clients sign for and ten minutes, because so long it may stay unknown', async () => {
    const { sell, pay, clock, asked } = await openGatewaySale();
    const lasting = (seconds: number) => sell({}, pay({ validBefore: BigInt(Math.floor(clock.now / 1000) + seconds) }));
    for (const seconds of [605_501, -1]) await expect(lasting(seconds)).rejects.toMatchObject(EXPIRED);
    expect(asked).toEqual([]);
    expect(await lasting(605_500)).toMatchObject(ANSWERED);
  });

  test('that the Gateway refuses is refused with the Gateway’s reason', async () => {
    const { sell, pay, gateway, row, asked } = await openGatewaySale();
    gateway.script('/v1/x402/verify', () => ({ json: { isValid: false, invalidReason: 'invalid_signature' } }));
    const payment = pay();
    await expect(sell({}, payment)).rejects.toMatchObject({ reason: 'invalid_signature' });
    expect([asked.includes('run'), await row(payment)]).toEqual([false, null]);
  });

  test('whose nonce was used before it was ever presented here was sold by another ledger, whoever got the money', async () => {
    const { sell, pay, spends, row, asked } = await openGatewaySale();
    for (const to of [SELLER.address, newKey().address]) {
      const [key, nonce] = [newKey(), Buffer.from(newKey().privateKey)];
      const payment = pay({ key, nonce });
      await spends(pay({ key, nonce, to }));
      await expect(sell({}, payment)).rejects.toMatchObject({ reason: 'payment_already_used' });
      expect(await row(payment)).toBeNull();
    }
    expect(asked.includes('run')).toBe(false);
  });

  test('buys nothing while the Gateway does not answer', async () => {
    const { sell, gateway, asked } = await openGatewaySale();
    await gateway.stop();
    await expect(sell()).rejects.toMatchObject({
      status: 503,
      code: 'settlement_unavailable',
      charged: false,
      message: expect.stringContaining('gateway: '),
    });
    expect(asked).toEqual(['balances']);
  });

  test('is open while no transfer is its own for certain, and fails where its transfer was given up', async () => {
    const { sell, pay, gateway, row } = await openGatewaySale({ waitMs: 50 });
    const payment = pay();
    let payer: object = { fromAddress: WALLET };
    gateway.script('/v1/x402/transfers', () => ({
      json: { transfers: gateway.transfers().map((one) => ({ ...one, ...payer })) },
    }));
    await expect(sell({}, payment)).rejects.toMatchObject(UNKNOWN);
    expect(await row(payment)).toMatchObject({ state: 'unknown', charged: null });
    await expect.poll(() => gateway.transfers()).toHaveLength(1);
    gateway.giveUp(gateway.transfers()[0]?.id ?? '');
    payer = {};
    // The evidence is read after pauses.
    const end = () => sell({}, payment).catch(({ reason, code }) => reason ?? code);
    await expect.poll(end).toBe('unexpected_settle_error');
    expect(await row(payment)).toMatchObject({ state: 'failed', charged: null });
  });
});

describe('a payment that the Gateway did not settle', () => {
  test('and was transferred after all has paid: that is found without the deposit, and it is not handed over', async () => {
    const { sell, sellInVain, pay, spends, row, asked } = await openGatewaySale();
    const payment = pay({ deposit: 1000n });
    expect(await sellInVain(payment)).toMatchObject({ reason: 'invalid_exact_evm_transaction_failed' });
    await spends(payment);
    expect(await sell({}, payment)).toMatchObject(ANSWERED);
    expect(asked).toEqual(['transfers', 'reserve', 'run', 'transfers']);
    expect(await row(payment)).toMatchObject({ state: 'settled', charged: 1000n });
  });

  test('and is still unused is checked like a new one, except for the trace that our own request left', async () => {
    const { sell, sellInVain, pay, row, gateway, asked } = await openGatewaySale();
    const [payment, poor] = [pay({ deposit: 1000n }), pay({ deposit: 1000n })];
    for (const one of [payment, poor]) await sellInVain(one);
    expect(await sell({}, payment)).toMatchObject(ANSWERED);
    expect(asked.slice(0, 5)).toEqual(['transfers', 'balances', 'reserve', 'verify', 'run']);
    expect(await row(payment)).toMatchObject({ state: 'settled', charged: 1000n });
    gateway.script('/v1/balances', () => ({ json: { balances: [] } }));
    await expect(sell({}, poor)).rejects.toMatchObject(POOR);
  });

  test('is not judged while its transfer cannot be told, and looked up once a second', async () => {
    const { sell, sellInVain, pay, spends, gateway, clock, asked } = await openGatewaySale();
    const payment = pay();
    await sellInVain(payment);
    await spends(payment);
    const [transfer] = gateway.transfers();
    gateway.script('/v1/x402/transfers', () => ({ json: { transfers: [transfer, transfer] } }));
    await expect(sell({}, payment)).rejects.toMatchObject(UNKNOWN);
    await expect(sell({}, payment)).rejects.toMatchObject(UNKNOWN);
    expect(asked).toEqual(['transfers']);
    clock.now += 1000;
    await expect(sell({}, payment)).rejects.toMatchObject(UNKNOWN);
    expect(asked).toEqual(['transfers', 'transfers']);
  });
});

describe('a settled payment of the Gateway', () => {
  test('is known by its transfer, and by the batch’s transaction once there is one; a lost one is an alert', async () => {
    const { sell, pay, row, stores, settler, gateway, clock, alerts } = await openGatewaySale();
    const payments = [pay(), pay()];
    for (const payment of payments) await sell({}, payment);
    const [first, second] = await Promise.all(payments.map(row));
    const [sold, lost] = gateway.transfers();
    expect([first, second].map((one) => one?.transaction)).toEqual(
      [sold, lost].map((one) => transferIdBytes(one?.id ?? '')),
    );

    const { batchOf, paymentsIn, due } = stores.transfers;
    await settler.refresh?.();
    expect(await batchOf(first?.id ?? '')).toBeNull();
    gateway.giveUp(lost?.id ?? '');
    const hash = gateway.batch();
    // Not looked at again at once.
    await settler.refresh?.();
    expect(await batchOf(first?.id ?? '')).toBeNull();
    clock.now += 60_000;
    await settler.refresh?.();
    expect(bytesToHex((await batchOf(first?.id ?? '')) ?? new Uint8Array())).toBe(hash);
    expect(await paymentsIn(hexToBytes(hash), 10)).toEqual([first?.id]);
    expect(alerts).toEqual([{ payment: second?.id, transfer: lost?.id }]);
    expect(await due(Number.MAX_SAFE_INTEGER, 10)).toEqual([]);
  });

  test('is missing from the books where its transfer was given up, and unread before its batch is known', async () => {
    const { sell, pay, row, settler, gateway } = await openGatewaySale();
    const payments = [pay(), pay()];
    for (const payment of payments) await sell({}, payment);
    gateway.giveUp(gateway.transfers()[1]?.id ?? '');
    await settler.refresh?.();
    const rows = (await Promise.all(payments.map(row))).filter((one) => one !== null);
    expect(await settler.books?.compare(rows, 0)).toEqual([
      { kind: 'unread', detail: 'its batch is not known yet' },
      { kind: 'missing', amount: 1000n, detail: 'the Gateway failed its transfer' },
    ]);
  });

  test('comes from a service that lists the domain which payers sign under, among whatever else', async () => {
    const { settler, gateway } = await openGatewaySale();
    expect(await settler.probe?.()).toEqual({ ok: true });
    const extra = { name: 'GatewayWalletBatched', version: '1', verifyingContract: WALLET };
    const kind = { x402Version: 2, scheme: 'exact', network: plain.network };
    const others = [
      kind,
      { ...kind, extra: {} },
      { ...kind, extra: { ...extra, name: 'USDC' } },
      { ...kind, extra: { ...extra, version: '2' } },
      { ...kind, extra: { ...extra, verifyingContract: `0x${'78'.repeat(20)}` } },
      { ...kind, extra: { ...extra, verifyingContract: 7 } },
    ];
    const listed = (kinds: readonly object[]) => {
      gateway.script('/v1/x402/supported', () => ({ json: { kinds } }));
      return settler.probe?.();
    };
    const unlisted = { ok: false, detail: '/supported does not list this network' };
    for (const other of others) expect(await listed([other])).toEqual(unlisted);
    const upper = WALLET.toUpperCase().replace('0X', '0x');
    expect(await listed([...others, { ...kind, extra: { ...extra, verifyingContract: upper } }])).toEqual({ ok: true });
  });
});
