import { keccak256 } from '../lib/secp256k1.ts';
import { type RpcCall, toQuantity } from './rpc/wire.ts';

// Calls of contracts: how one is made, what it returned, and which function an input names.

/** ERC-20, ERC-165 and EIP-3009: the first four bytes of keccak-256 of the signature (checked by a test). */
export const SELECTORS = {
  'name()': '0x06fdde03',
  'symbol()': '0x95d89b41',
  'decimals()': '0x313ce567',
  'totalSupply()': '0x18160ddd',
  'balanceOf(address)': '0x70a08231',
  'supportsInterface(bytes4)': '0x01ffc9a7',
  'transfer(address,uint256)': '0xa9059cbb',
  'transferFrom(address,address,uint256)': '0x23b872dd',
  'transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)': '0xe3ee160e',
  'transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)': '0xcf092995',
  'receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)': '0xef55bec6',
  'receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)': '0x88b7ab63',
} as const;

/** Topic of `Transfer(address,address,uint256)`, which ERC-20, ERC-721 and Arc's system log share. */
export const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** 1,000,000. Reading a name takes some ten thousand, through a proxy too; what needs more would only load the node. */
const CALL_GAS = '0xf4240';

export function viewCall(to: string, input: string, block: number | 'latest'): RpcCall {
  return {
    method: 'eth_call',
    params: [{ to, data: input, gas: CALL_GAS }, block === 'latest' ? block : toQuantity(block)],
  };
}

/** An unsigned integer returned by a contract. Null when it returned less than one 32-byte word, or no hex. */
export function decodeUint(returned: string): bigint | null {
  return /^0x[0-9a-fA-F]{64}/.test(returned) ? BigInt(returned.slice(0, 66)) : null;
}

/** Longest name or symbol that is passed on. A third party's contract chooses these strings. */
const MAX_TEXT = 64;
const WORD = 32;

/** A name or symbol: ABI `string`, or an older token's `bytes32`. Null when neither, no UTF-8, or nothing printable. */
export function decodeText(returned: string): string | null {
  const bytes = Buffer.from(returned.slice(2), 'hex');
  if (bytes.length === WORD) return printable(bytes.subarray(0, bytes.indexOf(0) === -1 ? WORD : bytes.indexOf(0)));
  const offset = readLength(bytes, 0);
  const length = offset === null ? null : readLength(bytes, offset);
  if (offset === null || length === null || offset + WORD + length > bytes.length) return null;
  return printable(bytes.subarray(offset + WORD, offset + WORD + length));
}

function readLength(bytes: Buffer, at: number): number | null {
  if (at + WORD > bytes.length) return null;
  const value = BigInt(`0x${bytes.toString('hex', at, at + WORD)}`);
  return value <= BigInt(bytes.length) ? Number(value) : null;
}

function printable(bytes: Uint8Array): string | null {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
  // Control and invisible formatting characters (direction overrides too) could disguise one token as another.
  const visible = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '').trim();
  return visible === '' ? null : Array.from(visible).slice(0, MAX_TEXT).join('');
}

/** The struct `ChannelConfig` of x402's batch settlement. */
const CHANNEL = '(address,address,address,address,address,uint40,bytes32)';
const CLAIMS = `((${CHANNEL},uint128),bytes,uint128)[]`;

/** State-changing functions of ERC-20, 721, 1155, 2612 and 3009, WETH9, Safe, and the contracts in `contracts.ts`. */
const SIGNATURES: readonly string[] = [
  ...Object.keys(SELECTORS),
  'approve(address,uint256)',
  'increaseAllowance(address,uint256)',
  'decreaseAllowance(address,uint256)',
  'mint(address,uint256)',
  'mint(uint256)',
  'burn(uint256)',
  'burn(address,uint256)',
  'burnFrom(address,uint256)',
  'permit(address,address,uint256,uint256,uint8,bytes32,bytes32)',
  'permit(address,address,uint256,uint256,bytes)',
  'cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)',
  'cancelAuthorization(address,bytes32,bytes)',
  'safeTransferFrom(address,address,uint256)',
  'safeTransferFrom(address,address,uint256,bytes)',
  'safeTransferFrom(address,address,uint256,uint256,bytes)',
  'safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)',
  'setApprovalForAll(address,bool)',
  'deposit()',
  'withdraw(uint256)',
  'transferOwnership(address)',
  'renounceOwnership()',
  'upgradeTo(address)',
  'upgradeToAndCall(address,bytes)',
  'aggregate((address,bytes)[])',
  'tryAggregate(bool,(address,bytes)[])',
  'aggregate3((address,bool,bytes)[])',
  'aggregate3Value((address,bool,uint256,bytes)[])',
  'multicall(bytes[])',
  'multicall(uint256,bytes[])',
  'approve(address,address,uint160,uint48)',
  'permitTransferFrom(((address,uint256),uint256,uint256),(address,uint256),address,bytes)',
  'addLiquidity(address,address,uint256,uint256,uint256,uint256,address,uint256)',
  'addLiquidityETH(address,uint256,uint256,uint256,address,uint256)',
  'removeLiquidity(address,address,uint256,uint256,uint256,address,uint256)',
  'swapExactTokensForTokens(uint256,uint256,address[],address,uint256)',
  'swapTokensForExactTokens(uint256,uint256,address[],address,uint256)',
  'swapExactETHForTokens(uint256,address[],address,uint256)',
  'swapExactTokensForETH(uint256,uint256,address[],address,uint256)',
  'exactInputSingle((address,address,uint24,address,uint256,uint256,uint256,uint160))',
  'exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))',
  'exactInput((bytes,address,uint256,uint256))',
  'exactOutputSingle((address,address,uint24,address,uint256,uint256,uint160))',
  'exactOutput((bytes,address,uint256,uint256))',
  'execute(bytes,bytes[])',
  'execute(bytes,bytes[],uint256)',
  'modifyLiquidities(bytes,uint256)',
  'increaseLiquidity((uint256,uint256,uint256,uint256,uint256,uint256))',
  'decreaseLiquidity((uint256,uint128,uint256,uint256,uint256))',
  'collect((uint256,address,uint128,uint128))',
  'depositForBurn(uint256,uint32,bytes32,address,bytes32,uint256,uint32)',
  'receiveMessage(bytes,bytes)',
  'deposit(address,uint256)',
  'depositFor(address,address,uint256)',
  'gatewayMint(bytes,bytes)',
  'register(string)',
  'execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)',
  `deposit(${CHANNEL},uint128,address,bytes)`,
  `claim(${CLAIMS})`,
  `claimWithSignature(${CLAIMS},bytes)`,
  'settle(address,address)',
  `refund(${CHANNEL},uint128)`,
  `refundWithSignature(${CHANNEL},uint128,uint256,bytes)`,
  `initiateWithdraw(${CHANNEL},uint128)`,
  `finalizeWithdraw(${CHANNEL})`,
];

const NAMES: ReadonlyMap<string, string> = new Map(SIGNATURES.map((signature) => [selectorOf(signature), signature]));

interface Method {
  readonly selector: `0x${string}`;
  readonly name: string | null;
  readonly signature: string | null;
}

/** Null for less than four bytes. A selector is four bytes of a hash, so a contract may give it another meaning. */
export function methodOf(input: string): Method | null {
  const selector = /^0x[0-9a-f]{8}/.exec(input.toLowerCase())?.[0] as `0x${string}` | undefined;
  if (selector === undefined) return null;
  const signature = NAMES.get(selector) ?? null;
  return { selector, name: signature?.slice(0, signature.indexOf('(')) ?? null, signature };
}

function selectorOf(signature: string): string {
  return `0x${Buffer.from(keccak256(Buffer.from(signature))).toString('hex', 0, 4)}`;
}
