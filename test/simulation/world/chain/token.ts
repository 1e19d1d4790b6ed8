import { addressWord, bytesWords, readerOf, topicOf, word } from './abi.ts';
import type { CallResult, Env, Frame } from './frame.ts';
import { type Hex, keccak, signerOf, toHex } from './keys.ts';
import { moveWei, unitsOf, type View, WEI_PER_UNIT } from './state.ts';
import { askWallet } from './wallets.ts';

/** USDC as Circle's FiatToken v2.2 has it, on a chain whose native currency it is. */
export const USDC: Hex = '0x3600000000000000000000000000000000000000';
/** Logs every movement once more, in wei. */
const SYSTEM: Hex = '0xfffffffffffffffffffffffffffffffffffffffe';

const selector = (signature: string): string => toHex(keccak(Buffer.from(signature))).slice(2, 10);
const topic = (signature: string): Hex => toHex(keccak(Buffer.from(signature)));

export const TRANSFER = topic('Transfer(address,address,uint256)');
export const USED = topic('AuthorizationUsed(address,bytes32)');
export const CANCELED = topic('AuthorizationCanceled(address,bytes32)');
const TERMS = 'address,address,uint256,uint256,uint256,bytes32';
export const SELECTORS = {
  byParts: selector(`transferWithAuthorization(${TERMS},uint8,bytes32,bytes32)`),
  byBytes: selector(`transferWithAuthorization(${TERMS},bytes)`),
  cancelByParts: selector('cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)'),
  cancelByBytes: selector('cancelAuthorization(address,bytes32,bytes)'),
  receive: selector(`receiveWithAuthorization(${TERMS},bytes)`),
  transfer: selector('transfer(address,uint256)'),
  state: selector('authorizationState(address,bytes32)'),
  balance: selector('balanceOf(address)'),
  domain: selector('DOMAIN_SEPARATOR()'),
  decimals: selector('decimals()'),
  symbol: selector('symbol()'),
  isValid: selector('isValidSignature(bytes32,bytes)'),
};

const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8');
const hashOf = (text: string): Buffer => keccak(utf8(text));

/** EIP-712's domain separator. */
export function domainOf(name: string, version: string, chainId: number, contract: Hex): Buffer {
  const type = hashOf('EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)');
  const rest = Buffer.from(word(chainId) + addressWord(contract), 'hex');
  return keccak(Buffer.concat([type, hashOf(name), hashOf(version), rest]));
}

/** An authorization's six fields, amounts in base units, times in Unix seconds. */
export interface Terms {
  readonly from: Hex;
  readonly to: Hex;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly nonce: Hex;
}

const FIELDS = 'address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce';
const TRANSFER_TYPE = toHex(hashOf(`TransferWithAuthorization(${FIELDS})`)).slice(2);
const RECEIVE_TYPE = toHex(hashOf(`ReceiveWithAuthorization(${FIELDS})`)).slice(2);
const CANCEL_TYPE = toHex(hashOf('CancelAuthorization(address authorizer,bytes32 nonce)')).slice(2);

function typed(domain: Buffer, struct: string): Buffer {
  return keccak(Buffer.concat([Buffer.from([0x19, 0x01]), domain, keccak(Buffer.from(struct, 'hex'))]));
}

const termsWords = ({ from, to, value, validAfter, validBefore, nonce }: Terms): string =>
  addressWord(from) + addressWord(to) + [value, validAfter, validBefore].map(word).join('') + nonce.slice(2);

/** What a payer signs. */
export const transferDigest = (domain: Buffer, terms: Terms): Buffer =>
  typed(domain, TRANSFER_TYPE + termsWords(terms));
/** What a payer signs where the payee itself must send it: a deposit into a channel. */
export const receiveDigest = (domain: Buffer, terms: Terms): Buffer => typed(domain, RECEIVE_TYPE + termsWords(terms));

export function cancelDigest(domain: Buffer, from: Hex, nonce: Hex): Buffer {
  return typed(domain, CANCEL_TYPE + addressWord(from) + nonce.slice(2));
}

/** Calldata that moves an authorization's money, in the form that fits its signature. */
export function transferCalldata(given: Terms, signature: Buffer): Hex {
  const terms = termsWords(given);
  if (signature.length !== 65)
    return `0x${SELECTORS.byBytes}${terms}${word(224)}${bytesWords(signature.toString('hex'))}`;
  const [v, r, s] = [signature.subarray(64), signature.subarray(0, 32), signature.subarray(32, 64)];
  return `0x${SELECTORS.byParts}${terms}${v.toString('hex').padStart(64, '0')}${r.toString('hex')}${s.toString('hex')}`;
}

/** Calldata by which the payee takes an authorization's money. */
export const receiveCalldata = (terms: Terms, signature: Buffer): Hex =>
  `0x${SELECTORS.receive}${termsWords(terms)}${word(224)}${bytesWords(signature.toString('hex'))}`;

/** Calldata that moves the sender's own money. */
export const transferOut = (to: Hex, units: bigint): Hex => `0x${SELECTORS.transfer}${addressWord(to)}${word(units)}`;

export function cancelCalldata(from: Hex, nonce: Hex, signature: Buffer): Hex {
  return `0x${SELECTORS.cancelByBytes}${addressWord(from)}${nonce.slice(2)}${word(96)}${bytesWords(signature.toString('hex'))}`;
}

type Reader = ReturnType<typeof readerOf>;

/** The terms and the signature of a transfer's calldata, in either form; null for any other call. */
export function readTransfer(data: Hex): { terms: Terms; signature: Buffer } | null {
  const form = data.slice(2, 10);
  if (form !== SELECTORS.byParts && form !== SELECTORS.byBytes) return null;
  return readTerms(data, form === SELECTORS.byParts);
}

function readTerms(data: Hex, byParts: boolean): { terms: Terms; signature: Buffer } {
  const args = readerOf(data.slice(10));
  const [value, validAfter, validBefore] = [args.number(64), args.number(96), args.number(128)];
  const terms = { from: args.address(0), to: args.address(32), value, validAfter, validBefore, nonce: args.hash(160) };
  return { terms, signature: signatureOf(args, byParts, 192) };
}

function signatureOf(args: Reader, byParts: boolean, at: number): Buffer {
  if (!byParts) return Buffer.from(args.bytes(at).slice(2), 'hex');
  const v = Buffer.from([Number(args.number(at) & 255n)]);
  return Buffer.concat([Buffer.from(args.hash(at + 32).slice(2) + args.hash(at + 64).slice(2), 'hex'), v]);
}

/** Gas of the token's own parts; a whole lone transfer then takes about 0.11M, as on Arc. */
const GAS = { read: 3_000, check: 12_000, use: 25_000, move: 38_000 } as const;

class Reverted extends Error {}
const require = (holds: boolean, why: string): void => {
  if (!holds) throw new Reverted(why);
};

/** The token contract. */
export function createToken(chainId: number) {
  const domain = domainOf('USDC', '2', chainId, USDC);
  const ok = (data: string, gasUsed: number): CallResult => ({ ok: true, data: `0x${data}`, gasUsed, why: '' });

  function checkSigned(env: Env, frame: Frame, from: Hex, digest: Buffer, signature: Buffer): number {
    const wallet = env.view.get(`code ${from}`) ?? null;
    if (wallet === null) {
      require(signerOf(digest, signature) === from, 'FiatTokenV2: invalid signature');
      return GAS.check;
    }
    // 63 of 64 parts of the gas go into a call.
    const gas = Math.floor(((frame.gas - GAS.check) * 63) / 64);
    const { gasUsed, valid } = askWallet(wallet, {
      digest,
      signature,
      gas,
      gasPrice: env.gasPrice,
      origin: env.origin,
      relayer: env.relayer,
    });
    frame.used += gasUsed;
    require(valid === true, 'FiatTokenV2: invalid signature');
    return GAS.check;
  }

  function checkOpen({ view }: Env, accounts: readonly Hex[]): void {
    require(view.get('paused') !== true, 'Pausable: paused');
    for (const account of accounts)
      require(view.get(`blocked ${account}`) !== true, 'Blacklistable: account is blacklisted');
  }

  function move(env: Env, from: Hex, to: Hex, units: bigint): void {
    require(unitsOf(env.view, from) >= units, 'ERC20: transfer amount exceeds balance');
    require(moveWei(env.view, from, to, units * WEI_PER_UNIT), 'ERC20: transfer amount exceeds balance');
    if (units > 0n && from !== to) env.log(SYSTEM, [TRANSFER, topicOf(from), topicOf(to)], units * WEI_PER_UNIT);
    env.log(USDC, [TRANSFER, topicOf(from), topicOf(to)], units);
  }

  const unused = (view: View, from: Hex, nonce: Hex): boolean => view.get(`authorization ${from}${nonce}`) !== true;

  function transferAuthorized(env: Env, frame: Frame, digestOf = transferDigest): void {
    const { terms, signature } = readTerms(frame.data, frame.data.startsWith(SELECTORS.byParts, 2));
    const { from, to, value, nonce } = terms;
    checkOpen(env, [from, to]);
    require(digestOf === transferDigest || frame.from === to, 'FiatTokenV2: caller must be the payee');
    require(BigInt(env.timestamp) > terms.validAfter, 'FiatTokenV2: authorization is not yet valid');
    require(BigInt(env.timestamp) < terms.validBefore, 'FiatTokenV2: authorization is expired');
    frame.used += GAS.read;
    require(unused(env.view, from, nonce), 'FiatTokenV2: authorization is used or canceled');
    frame.used += checkSigned(env, frame, from, digestOf(domain, terms), signature);
    env.view.set(`authorization ${from}${nonce}`, true);
    env.log(USDC, [USED, topicOf(from), nonce], null);
    frame.used += GAS.use;
    move(env, from, to, value);
    frame.used += GAS.move;
  }

  function cancel(env: Env, frame: Frame, byParts: boolean): void {
    const args = readerOf(frame.data.slice(10));
    const [from, nonce] = [args.address(0), args.hash(32)];
    checkOpen(env, []);
    require(unused(env.view, from, nonce), 'FiatTokenV2: authorization is used or canceled');
    frame.used += checkSigned(env, frame, from, cancelDigest(domain, from, nonce), signatureOf(args, byParts, 64));
    env.view.set(`authorization ${from}${nonce}`, true);
    env.log(USDC, [CANCELED, topicOf(from), nonce], null);
    frame.used += GAS.use;
  }

  function run(env: Env, frame: Frame): string {
    const args = readerOf(frame.data.slice(10));
    frame.used += GAS.read;
    switch (frame.data.slice(2, 10)) {
      case SELECTORS.byParts:
      case SELECTORS.byBytes:
        transferAuthorized(env, frame);
        return '';
      case SELECTORS.receive:
        transferAuthorized(env, frame, receiveDigest);
        return '';
      case SELECTORS.cancelByParts:
      case SELECTORS.cancelByBytes:
        cancel(env, frame, frame.data.startsWith(SELECTORS.cancelByParts, 2));
        return '';
      case SELECTORS.transfer:
        checkOpen(env, [frame.from, args.address(0)]);
        move(env, frame.from, args.address(0), args.number(32));
        frame.used += GAS.move;
        return word(1);
      case SELECTORS.state:
        return word(unused(env.view, args.address(0), args.hash(32)) ? 0 : 1);
      case SELECTORS.balance:
        return word(unitsOf(env.view, args.address(0)));
      case SELECTORS.domain:
        return domain.toString('hex');
      case SELECTORS.decimals:
        return word(6);
      case SELECTORS.symbol:
        return word(32) + bytesWords(utf8('USDC').toString('hex'));
      default:
        throw new Reverted('no such call');
    }
  }

  return {
    domain,
    call(env: Env, frame: Frame): CallResult {
      try {
        return ok(run(env, frame), frame.used);
      } catch (error) {
        if (!(error instanceof Reverted) && !(error instanceof RangeError)) throw error;
        return { ok: false, data: '0x', gasUsed: Math.min(frame.used, frame.gas), why: error.message };
      }
    },
  };
}

export type Token = ReturnType<typeof createToken>;
