import { keccak256 } from '../lib/secp256k1.ts';
import { SELECTORS } from './abi.ts';

/** The struct `ChannelConfig` of x402's batch settlement. */
const CHANNEL = '(address,address,address,address,address,uint40,bytes32)';
const CLAIMS = `((${CHANNEL},uint128),bytes,uint128)[]`;

/**
 * Functions that change state in the contracts that `known-contracts.ts` names, and in tokens of the usual standards.
 * Sources: ERC-20, 721, 1155, 2612 and 3009, WETH9, Multicall3, Permit2, Uniswap's v2 and v3 routers, SwapRouter02, UniversalRouter and v4's position
 * manager, Circle's CCTP v2 and Gateway, ERC-8004, Safe, x402's batch settlement.
 */
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

/** What a call names: its first four bytes, and the function that they stand for where we know one. */
export interface Method {
  readonly selector: `0x${string}`;
  /** `transfer`; null for a function that we do not know. */
  readonly name: string | null;
  /** `transfer(address,uint256)`. */
  readonly signature: string | null;
}

/**
 * The function that a call's input names; null for an input of less than four bytes.
 * A selector is four bytes of a hash, so a contract may give it another meaning.
 */
export function methodOf(input: string): Method | null {
  const selector = /^0x[0-9a-f]{8}/.exec(input.toLowerCase())?.[0] as `0x${string}` | undefined;
  if (selector === undefined) return null;
  const signature = NAMES.get(selector) ?? null;
  return { selector, name: signature?.slice(0, signature.indexOf('(')) ?? null, signature };
}

/** The first four bytes of keccak-256 of the signature. */
function selectorOf(signature: string): string {
  return `0x${Buffer.from(keccak256(Buffer.from(signature))).toString('hex', 0, 4)}`;
}
