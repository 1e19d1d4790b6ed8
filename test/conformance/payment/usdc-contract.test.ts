import { randomBytes } from 'node:crypto';
import {
  type Abi,
  createPublicClient,
  createWalletClient,
  type Hex,
  http,
  parseEventLogs,
  parseSignature,
  serializeSignature,
  type TransactionReceipt,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { artifacts, SYSTEM_LOG, USDC } from '../../../dev/contracts.ts';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { arcWithRoom } from '../../support/chain/arc-with-room.ts';

const { abi } = artifacts.Usdc;
const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const payer = privateKeyToAccount(createAccount().privateKey);
const seller = createAccount().address;

type Authorization = { from: Hex; to: Hex; nonce: Hex } & Record<'value' | 'validAfter' | 'validBefore', bigint>;

let network: EmbeddedNetwork;
let chain: ReturnType<typeof createPublicClient>;
let relayer: ReturnType<typeof walletOf>;

function walletOf(privateKey: Hex) {
  return createWalletClient({
    account: privateKeyToAccount(privateKey),
    chain: arcWithRoom,
    transport: http(network.rpcUrl),
  });
}

beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  chain = createPublicClient({ chain: arcWithRoom, transport: http(network.rpcUrl), pollingInterval: 30 });
  relayer = walletOf(network.relayer.privateKey);
  await network.fundUsdc(payer.address, 1_000_000n);
});

afterAll(() => network?.stop());

function authorization(changes: Partial<Authorization> = {}): Authorization {
  const nonce: Hex = `0x${randomBytes(32).toString('hex')}`;
  const validBefore = BigInt(Math.floor(Date.now() / 1000) + 600);
  return { from: payer.address, to: seller, value: 1000n, validAfter: 0n, validBefore, nonce, ...changes };
}

const fieldsOf = (types: Record<string, string>) => Object.entries(types).map(([name, type]) => ({ name, type }));
const MOVE = fieldsOf({
  from: 'address',
  to: 'address',
  value: 'uint256',
  validAfter: 'uint256',
  validBefore: 'uint256',
  nonce: 'bytes32',
});
const CANCEL = fieldsOf({ authorizer: 'address', nonce: 'bytes32' });

function sign(primaryType: string, message: Record<string, unknown>, signer = payer): Promise<Hex> {
  const types = { [primaryType]: primaryType === 'CancelAuthorization' ? CANCEL : MOVE };
  const domain = { name: 'USDC', version: '2', chainId: 5042, verifyingContract: USDC };
  return signer.signTypedData({ domain, types, primaryType, message });
}

const signTransfer = (auth: Authorization) => sign('TransferWithAuthorization', { ...auth });

/** `(v, r, s)`, the form of the older function. */
function split(signature: Hex): [number, Hex, Hex] {
  const { r, s, v } = parseSignature(signature);
  return [Number(v), r, s];
}

const terms = (auth: Authorization) =>
  [auth.from, auth.to, auth.value, auth.validAfter, auth.validBefore, auth.nonce] as const;

/** Simulates first, so that a refusal shows the contract's own message, then sends and waits. */
async function call(functionName: string, args: readonly unknown[]): Promise<TransactionReceipt> {
  const request = { address: USDC, abi: abi as Abi, functionName, args: [...args] };
  await chain.simulateContract({ ...request, account: relayer.account });
  return chain.waitForTransactionReceipt({ hash: await relayer.writeContract(request) });
}

function read<T>(functionName: string, args: readonly unknown[] = []): Promise<T> {
  return chain.readContract({ address: USDC, abi: abi as Abi, functionName, args: [...args] }) as Promise<T>;
}

const pay = async (auth: Authorization) =>
  call('transferWithAuthorization', [...terms(auth), await signTransfer(auth)]);

describe('the identity of USDC', () => {
  test('has on chain 5042 the domain separator that is published for Arc', async () => {
    expect(await read('DOMAIN_SEPARATOR')).toBe('0x940506929bba468048a19b567f4f0d534714bc06604b5c3017e5d16785ccdf84');
  });

  test('has the names, decimals and type hashes of FiatToken', async () => {
    const hashes = ['TRANSFER_WITH', 'RECEIVE_WITH', 'CANCEL'].map((kind) => `${kind}_AUTHORIZATION_TYPEHASH`);
    const getters = ['name', 'symbol', 'version', 'decimals', ...hashes];
    expect(await Promise.all(getters.map((getter) => read(getter)))).toEqual([
      ...['USDC', 'USDC', '2', 6],
      '0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267',
      '0xd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de8',
      '0x158b0a9edf7a828aad02f63cd515c68ef2f50ba807396f6d12842833a1597429',
    ]);
  });
});

describe('transferWithAuthorization', () => {
  test.each(['bytes', 'v, r, s'])('moves exactly the value with the signature as %s', async (form) => {
    const auth = authorization();
    const signature = await signTransfer(auth);
    const before = await read<bigint>('balanceOf', [seller]);
    expect(await read('authorizationState', [auth.from, auth.nonce])).toBe(false);
    const last = form === 'bytes' ? [signature] : split(signature);
    const receipt = await call('transferWithAuthorization', [...terms(auth), ...last]);
    expect(receipt.status).toBe('success');
    expect(await read('balanceOf', [seller])).toBe(before + 1000n);
    expect(await read('authorizationState', [auth.from, auth.nonce])).toBe(true);
  });

  test('logs AuthorizationUsed, then the system’s transfer in 18 decimals, then the token’s in 6', async () => {
    const auth = authorization({ value: 7n });
    const receipt = await pay(auth);
    const logs = parseEventLogs({ abi: abi as Abi, logs: receipt.logs });
    expect(logs.map((log) => ({ emitter: log.address, name: log.eventName, args: log.args }))).toEqual([
      { emitter: USDC, name: 'AuthorizationUsed', args: { authorizer: payer.address, nonce: auth.nonce } },
      { emitter: SYSTEM_LOG, name: 'Transfer', args: { from: payer.address, to: seller, value: 7n * 10n ** 12n } },
      { emitter: USDC, name: 'Transfer', args: { from: payer.address, to: seller, value: 7n } },
    ]);
  });

  test.each([
    ['of nothing', { value: 0n }],
    ['to the payer itself', { to: payer.address }],
  ])('is not logged by the system as a transfer %s, but by the token', async (_case, changes) => {
    const { logs } = await pay(authorization(changes));
    expect(logs.map((log) => log.address)).toEqual([USDC, USDC]);
  });

  test('is refused a second time, in the other form too', async () => {
    const auth = authorization();
    const signature = await signTransfer(auth);
    await call('transferWithAuthorization', [...terms(auth), signature]);
    for (const last of [[signature], split(signature)]) {
      await expect(call('transferWithAuthorization', [...terms(auth), ...last])).rejects.toThrow(
        'FiatTokenV2: authorization is used or canceled',
      );
    }
  });

  test.each([
    ['not yet valid', { validAfter: BigInt(Math.floor(Date.now() / 1000) + 600) }, 'authorization is not yet valid'],
    ['expired', { validBefore: BigInt(Math.floor(Date.now() / 1000) - 5) }, 'authorization is expired'],
    ['beyond the balance', { value: 10n ** 12n }, 'ERC20: transfer amount exceeds balance'],
    [
      'to the zero address',
      { to: '0x0000000000000000000000000000000000000000' as Hex },
      'transfer to the zero address',
    ],
  ])('is refused when %s, and the nonce stays unused', async (_case, changes, reason) => {
    const auth = authorization(changes);
    await expect(pay(auth)).rejects.toThrow(reason);
    expect(await read('authorizationState', [auth.from, auth.nonce])).toBe(false);
  });

  test('is refused with a changed amount', async () => {
    const auth = authorization();
    const args = [...terms({ ...auth, value: 2000n }), await signTransfer(auth)];
    await expect(call('transferWithAuthorization', args)).rejects.toThrow('FiatTokenV2: invalid signature');
  });

  test('is refused with the mirrored signature (high s)', async () => {
    const auth = authorization();
    const { r, s, yParity } = parseSignature(await signTransfer(auth));
    const mirrored: Hex = `0x${(CURVE_ORDER - BigInt(s)).toString(16).padStart(64, '0')}`;
    const malleated = serializeSignature({ r, s: mirrored, yParity: 1 - yParity });
    for (const last of [[malleated], split(malleated)]) {
      await expect(call('transferWithAuthorization', [...terms(auth), ...last])).rejects.toThrow(
        "ECRecover: invalid signature 's' value",
      );
    }
  });

  test('is refused with a v of 0 or 1, and with any length but 65 bytes', async () => {
    const auth = authorization();
    const [v, r, s] = split(await signTransfer(auth));
    await expect(call('transferWithAuthorization', [...terms(auth), v - 27, r, s])).rejects.toThrow(
      "ECRecover: invalid signature 'v' value",
    );
    const tooLong: Hex = `${await signTransfer(auth)}00`;
    await expect(call('transferWithAuthorization', [...terms(auth), tooLong])).rejects.toThrow(
      'ECRecover: invalid signature length',
    );
  });

  test('uses no more gas than Arc charges for it', async () => {
    const first = await pay(authorization({ to: createAccount().address }));
    const second = await pay(authorization());
    // 112,519 were observed on mainnet, whose token is behind a proxy and checks a blocklist.
    for (const { gasUsed } of [first, second]) expect(gasUsed).toBeLessThan(112_519n);
    expect(second.gasUsed).toBeGreaterThan(60_000n);
  });
});

describe('cancelAuthorization', () => {
  test.each(['bytes', 'v, r, s'])('with the signature as %s ends the authorization for ever', async (form) => {
    const auth = authorization();
    const signature = await sign('CancelAuthorization', { authorizer: auth.from, nonce: auth.nonce });
    const last = form === 'bytes' ? [signature] : split(signature);
    const receipt = await call('cancelAuthorization', [auth.from, auth.nonce, ...last]);
    const [log] = parseEventLogs({ abi: abi as Abi, logs: receipt.logs });
    expect(log).toMatchObject({
      eventName: 'AuthorizationCanceled',
      args: { authorizer: payer.address, nonce: auth.nonce },
    });
    expect(await read('authorizationState', [auth.from, auth.nonce])).toBe(true);
    await expect(pay(auth)).rejects.toThrow('FiatTokenV2: authorization is used or canceled');
  });

  test('is refused for another account', async () => {
    const signature = await sign('CancelAuthorization', { authorizer: seller, nonce: authorization().nonce });
    await expect(call('cancelAuthorization', [seller, authorization().nonce, signature])).rejects.toThrow(
      'FiatTokenV2: invalid signature',
    );
  });
});

describe('receiveWithAuthorization', () => {
  test.each(['bytes', 'v, r, s'])('with the signature as %s may be called by the payee alone', async (form) => {
    const mine = authorization({ to: relayer.account.address });
    const signature = await sign('ReceiveWithAuthorization', { ...mine });
    const last = form === 'bytes' ? [signature] : split(signature);
    const other = authorization();
    await expect(call('receiveWithAuthorization', [...terms(other), ...last])).rejects.toThrow(
      'FiatTokenV2: caller must be the payee',
    );
    expect((await call('receiveWithAuthorization', [...terms(mine), ...last])).status).toBe('success');
    expect(await read('authorizationState', [mine.from, mine.nonce])).toBe(true);
  });

  test('takes no signature for another function, and no other function takes its signature', async () => {
    const auth = authorization({ to: relayer.account.address });
    const signature = await sign('ReceiveWithAuthorization', { ...auth });
    await expect(call('transferWithAuthorization', [...terms(auth), signature])).rejects.toThrow('invalid signature');
  });
});

describe('for a payer with code (ERC-1271)', () => {
  let wallet: Hex;
  beforeAll(async () => {
    wallet = await network.deploy('SmartWallet', [payer.address]);
    await network.fundUsdc(wallet, 5000n);
  });

  test('the owner’s signature pays', async () => {
    const auth = authorization({ from: wallet });
    expect((await pay(auth)).status).toBe('success');
    expect(await read('balanceOf', [wallet])).toBe(4000n);
  });

  test('a signature that the wallet does not accept is refused', async () => {
    const otherWallet = await network.deploy('SmartWallet', [createAccount().address]);
    await network.fundUsdc(otherWallet, 5000n);
    await expect(pay(authorization({ from: otherWallet }))).rejects.toThrow('FiatTokenV2: invalid signature');
  });

  test('an account with code is never verified by recovery', async () => {
    const owner = privateKeyToAccount(createAccount().privateKey);
    await network.fundUsdc(owner.address, 5000n);
    // The account itself signs, but its code does not answer ERC-1271 calls.
    await network.rpc('anvil_setCode', [owner.address, artifacts.SystemLog.runtime]);
    const auth = authorization({ from: owner.address });
    const signature = await sign('TransferWithAuthorization', { ...auth }, owner);
    await expect(call('transferWithAuthorization', [...terms(auth), signature])).rejects.toThrow('invalid signature');
  });
});

describe('ERC-20', () => {
  test('keeps the allowance through approve and transferFrom, and refuses beyond it', async () => {
    const owner = createAccount();
    await network.fundUsdc(owner.address, 5000n);
    await network.fundNative(owner.address, 10n ** 18n);
    const args = [relayer.account.address, 1500n];
    const request = { address: USDC, abi: abi as Abi, functionName: 'approve', args };
    const hash = await walletOf(owner.privateKey).writeContract(request);
    await chain.waitForTransactionReceipt({ hash });
    await call('transferFrom', [owner.address, seller, 1000n]);
    expect(await read('allowance', [owner.address, relayer.account.address])).toBe(500n);
    await expect(call('transferFrom', [owner.address, seller, 1000n])).rejects.toThrow(
      'ERC20: transfer amount exceeds allowance',
    );
  });

  test('lets only the token write the system log', async () => {
    const args = [payer.address, seller, 1n];
    const request = { address: SYSTEM_LOG, abi: artifacts.SystemLog.abi, functionName: 'record', args };
    await expect(chain.simulateContract({ ...request, account: relayer.account })).rejects.toThrow('only the token');
  });
});
