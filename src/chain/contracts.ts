import type { Hex } from 'viem';
import { keccak256 } from '../lib/secp256k1.ts';
import type { ChainClient } from './rpc/client.ts';
import { data, type RpcCall, type RpcOptions, type RpcOutcome, toQuantity } from './rpc/wire.ts';

// How a contract is called, what it returned, which function an input names; whose code it runs, and its label.

/** ERC-20, ERC-165 and EIP-3009. Checked by a test. */
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

/** `Transfer(address,address,uint256)` of ERC-20, ERC-721 and Arc's system log. */
export const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** 1,000,000. Reading a name takes some ten thousand, through a proxy too. */
const CALL_GAS = '0xf4240';

export function viewCall(to: string, input: string, block: number | 'latest'): RpcCall {
  return {
    method: 'eth_call',
    params: [{ to, data: input, gas: CALL_GAS }, block === 'latest' ? block : toQuantity(block)],
  };
}

/** Null when less than one 32-byte word was returned, or no hex. */
export function decodeUint(returned: string): bigint | null {
  return /^0x[0-9a-fA-F]{64}/.test(returned) ? BigInt(returned.slice(0, 66)) : null;
}

/** A third party chooses these strings. */
const MAX_TEXT = 64;
const WORD = 32;

/** ABI `string`, or an older token's `bytes32`. Null when neither, no UTF-8, or nothing printable. */
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
  // Invisible characters (direction overrides too) could disguise one token as another.
  const visible = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '').trim();
  return visible === '' ? null : Array.from(visible).slice(0, MAX_TEXT).join('');
}

/** `ChannelConfig` of x402's batch settlement. */
const CHANNEL = '(address,address,address,address,address,uint40,bytes32)';
const CLAIMS = `((${CHANNEL},uint128),bytes,uint128)[]`;

/** Of ERC-20, 721, 1155, 2612 and 3009, WETH9, Safe, and the contracts below. */
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

/** Null for less than four bytes. A contract may give a selector another meaning. */
export function methodOf(input: string): Method | null {
  const selector = /^0x[0-9a-f]{8}/.exec(input.toLowerCase())?.[0] as `0x${string}` | undefined;
  if (selector === undefined) return null;
  const signature = NAMES.get(selector) ?? null;
  return { selector, name: signature?.slice(0, signature.indexOf('(')) ?? null, signature };
}

function selectorOf(signature: string): string {
  return `0x${Buffer.from(keccak256(Buffer.from(signature))).toString('hex', 0, 4)}`;
}

// --- What a contract is. Slots and symbols are its claims

type ProxyStandard = 'EIP-7702' | 'EIP-1167' | 'EIP-1967' | 'EIP-1967 beacon' | 'ZeppelinOS';

/** Whose code an account runs. In lower case. */
export interface Proxy {
  readonly standard: ProxyStandard;
  /** Null when the beacon names none. */
  readonly target: Hex | null;
  readonly beacon: Hex | null;
}

interface AccountCode {
  /** `0x` for an account without code; null when the node gave none. */
  readonly code: Hex | null;
  /** Null when it is no known kind of proxy, undefined when the node gave no code or no storage. */
  readonly proxy: Proxy | null | undefined;
}

/** Checked by a test. EIP-1967: keccak-256 of the name less one. ZeppelinOS (Circle's tokens): keccak-256. */
export const PROXY_SLOTS = {
  'eip1967.proxy.implementation': '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc',
  'eip1967.proxy.beacon': '0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50',
  'org.zeppelinos.proxy.implementation': '0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3',
} as const;
/** `implementation()`, checked by a test. */
export const BEACON_SELECTOR = '0x5c60da1b';

/** EIP-1167: a minimal proxy's whole code, around its target. */
const MINIMAL_PROXY = /^0x363d3d373d3d3d363d73([0-9a-f]{40})5af43d82803e903d91602b57fd5bf3$/;
/** EIP-7702: a delegating wallet's whole code. */
const DELEGATION = /^0xef0100([0-9a-f]{40})$/;

/** For one batch with the caller's other reads. */
export function accountCodeCalls(address: string, block: number): RpcCall[] {
  const at = toQuantity(block);
  const slots = Object.values(PROXY_SLOTS);
  return [
    { method: 'eth_getCode', params: [address, at] },
    ...slots.map((slot) => ({ method: 'eth_getStorageAt', params: [address, slot, at] })),
  ];
}

/** From `accountCodeCalls`. The first standard that applies counts. A beacon costs one more request. */
export async function readAccountCode(
  chain: ChainClient,
  outcomes: readonly RpcOutcome[],
  block: number,
  options: RpcOptions,
): Promise<AccountCode> {
  const [codeOutcome, ...slots] = outcomes;
  const code = codeOf(codeOutcome);
  if (code === null) return { code, proxy: undefined };
  const direct = (standard: ProxyStandard, target: Hex) => ({ code, proxy: { standard, target, beacon: null } });
  if (code === '0x') return { code, proxy: null };
  const delegate = delegateOf(code);
  if (delegate !== null) return direct('EIP-7702', delegate);
  const minimal = minimalTarget(code);
  if (minimal !== null) return direct('EIP-1167', minimal);
  if (slots.some((outcome) => 'error' in outcome)) return { code, proxy: undefined };
  const [implementation = null, beacon = null, zeppelin = null] = slots.map((outcome) => addressIn(bytesOf(outcome)));
  if (implementation !== null) return direct('EIP-1967', implementation);
  if (zeppelin !== null) return direct('ZeppelinOS', zeppelin);
  if (beacon === null) return { code, proxy: null };
  const target = await askBeacon(chain, beacon, block, options);
  return { code, proxy: { standard: 'EIP-1967 beacon', target, beacon } };
}

function codeOf(outcome: RpcOutcome | undefined): Hex | null {
  const answer = outcome !== undefined && 'result' in outcome ? data.safeParse(outcome.result).data : undefined;
  return answer === undefined ? null : (answer.toLowerCase() as Hex);
}

/** By EIP-7702, of code in lower case. Such an account stays a wallet. */
export const delegateOf = (code: string): Hex | null => addressBy(DELEGATION, code);
const minimalTarget = (code: string): Hex | null => addressBy(MINIMAL_PROXY, code);

function addressBy(form: RegExp, code: string): Hex | null {
  const match = form.exec(code)?.[1];
  return match === undefined ? null : `0x${match}`;
}

function bytesOf(outcome: RpcOutcome | undefined): string {
  const result = outcome !== undefined && 'result' in outcome ? outcome.result : null;
  return typeof result === 'string' && /^0x(?:[0-9a-fA-F]{2})*$/.test(result) ? result : '0x';
}

function addressIn(word: string): Hex | null {
  const match = /^0x0{24}([0-9a-fA-F]{40})$/.exec(word)?.[1];
  return match === undefined || /^0+$/.test(match) ? null : `0x${match.toLowerCase()}`;
}

/** Null also when the node does not answer: the caller's answer does not depend on it. */
async function askBeacon(chain: ChainClient, beacon: Hex, block: number, options: RpcOptions): Promise<Hex | null> {
  const outcomes = await chain.batch([viewCall(beacon, BEACON_SELECTOR, block)], options).catch((error: unknown) => {
    if (options.signal?.aborted) throw error;
    return [];
  });
  return addressIn(bytesOf(outcomes[0]));
}

/** In lower case. `code` is null when it was read before and is no minimal proxy's. */
export interface ContractCode {
  readonly address: `0x${string}`;
  readonly code: `0x${string}` | null;
}

interface ContractLabel {
  readonly text: string | null;
  readonly isToken: boolean;
  readonly isProxy: boolean;
}

/** By known name, proxy target and symbol. Rejects when no provider answers. */
export async function labelContracts(
  chain: ChainClient,
  contracts: readonly ContractCode[],
  options: RpcOptions,
): Promise<ContractLabel[]> {
  const alive = contracts.filter(({ code }) => code !== '0x');
  const outcomes = await chain.batch(
    alive.flatMap(({ address }) => [slotCall(address), viewCall(address, SELECTORS['symbol()'], 'latest')]),
    options,
  );
  const labels = new Map(
    alive.map((contract, at) => [
      contract.address,
      label(chain.chainId, contract, outcomes[2 * at], outcomes[2 * at + 1]),
    ]),
  );
  const dead = (address: string) => ({ text: knownContract(chain.chainId, address), isToken: false, isProxy: false });
  return contracts.map(({ address }) => labels.get(address) ?? dead(address));
}

function slotCall(address: string): RpcCall {
  return { method: 'eth_getStorageAt', params: [address, PROXY_SLOTS['eip1967.proxy.implementation'], 'latest'] };
}

function label(
  chainId: number,
  { address, code }: ContractCode,
  slot: RpcOutcome | undefined,
  symbol: RpcOutcome | undefined,
): ContractLabel {
  const named = (target: string) => {
    const known = knownContract(chainId, target);
    return known === null ? target : `${target} (${known})`;
  };
  const minimal = code === null ? null : minimalTarget(code);
  const target = addressIn(bytesOf(slot));
  const ticker = decodeText(bytesOf(symbol));
  const parts = [
    knownContract(chainId, address),
    minimal === null ? null : `minimal proxy to ${named(minimal)}`,
    target === null ? null : `proxy to ${named(target)}`,
    ticker === null ? null : `token "${ticker}"`,
  ].filter((part) => part !== null);
  return {
    text: parts.length === 0 ? null : parts.join(', '),
    isToken: ticker !== null,
    isProxy: minimal !== null || target !== null,
  };
}

/** On both of Arc's networks. Source of all names: `arc.md` of the project's facts, section 2. */
const EVERYWHERE = {
  '0x3600000000000000000000000000000000000000': 'USDC',
  '0xca11bde05977b3631167028862be2a173976ca11': 'Multicall3',
  '0x000000000022d473030f116ddee9f6b43ac78ba3': 'Permit2',
  '0x4e59b44847b379578588920ca78fbf26c0b4956c': 'CREATE2 factory',
  '0x5294e9927c3306dcbadb03fe70b92e01ccede505': 'Memo',
  '0x522faf9a91c41c443c66765030741e4aace147d0': 'Multicall3From',
};

const MAINNET = {
  '0xc6ad664ac6679f4ce74e10e91449c93ec1ae3ca6': 'USDC implementation',
  '0xbef5f6d51cb62b58e6a8f77868681825c6fe21c1': 'EURC',
  '0x8a5d989bbb96929f689b0200f435f53da42bf490': 'USYC',
  '0x51a8ce47dc08ba5cd19c7aa84ea6fd6664f60f9b': 'USYC Teller',
  '0xb69ecb156dc0028198028c501340d5367845ca72': 'USYC Entitlements',
  '0x4bc8d5acd3d040d2903dd9c5b7048520c6ff537a': 'USYC Oracle',
  '0x171a4217b86a807a64eb94757db6849fb4bdbaa0': 'cirBTC',
  '0x128cc466b61f542da60c70e3aa11c10e19b84edb': 'WETH (bridged)',
  '0x28b5a0e9c621a5badaa536219b3a228c8168cf5d': 'CCTP v2 TokenMessenger',
  '0x81d40f21f12a8f0e3252bccb954d722d4c464b64': 'CCTP v2 MessageTransmitter',
  '0xfd78ee919681417d192449715b2594ab58f5d002': 'CCTP v2 TokenMinter',
  '0xec546b6b005471ecf012e5af77fbec07e0fd8f78': 'CCTP v2 MessageV2',
  '0x431871229103b780868f8c6bb820cd16ecf942bc': 'CrossChainTokenService',
  '0x77777777dcc4d5a8b6e418fd04d8997ef11000ee': 'Gateway Wallet',
  '0x2222222d7164433c4c09b0b0d809a9b52c04c205': 'Gateway Minter',
  '0xe2e5f173576b513d994073ccbdacbe027d43dfe6': 'StableFX FxEscrow',
  '0x8004a169fb4a3325136eb29fa0ceb6d2e539a432': 'ERC-8004 identity registry',
  '0x8004baa17c55a88189ae136b182e5fda19de9b63': 'ERC-8004 reputation registry',
  '0x8004cc8439f36fd5f9f049d9ff86523df6daab58': 'ERC-8004 validation registry',
  '0x89e5db8b5aa49aa85ac63f691524311aeb649eba': 'Uniswap v2 factory',
  '0x1f7d7550b1b028f7571e69a784071f0205fd2efa': 'Uniswap v2 router',
  '0xf0db7b58379503491d857db50ac9ece64c653918': 'Uniswap v3 factory',
  '0x39654a85a4c05127f5fd6ed22caec077a0fb1377': 'Uniswap v3 position manager',
  '0x53bf6b0684ec7ef91e1387da3d1a1769bc5a6f77': 'Uniswap SwapRouter02',
  '0x8366a39cc670b4001a1121b8f6a443a643e40951': 'Uniswap v4 PoolManager',
  '0x6049c9a0e26405c0985f9e3685c87d0ae917f82b': 'Uniswap v4 position manager',
  '0xf3334192d15450cdd385c8b70e03f9a6bd9e673b': 'Uniswap v4 StateView',
  '0x4fca4a51ab4f23a7447b3284fbd7d73289a89fb1': 'Uniswap UniversalRouter',
  '0xb89df768af2cfe637ceb352c587fe8edaf491d03': 'Aero factory',
  '0xb4702e1375f712da2e0d5f534c30c0c1513edb2b': 'Aero router',
  '0x6131b5fae19ea4f9d964eac0408e4408b66337b5': 'KyberSwap router',
  '0xa4072583658fae592a3506a42431cb6316a8d40b': 'LI.FI',
};

const TESTNET = {
  '0x89b50855aa3be2f677cd6303cec089b5f319d72a': 'EURC',
  '0xe9185f0c5f296ed1797aae4238d26ccabeadb86c': 'USYC',
  '0xf0c4a4ce82a5746abaad9425360ab04fbba432bf': 'cirBTC',
  '0x0077777d7eba4688bdef3e311b846f25870a19b9': 'Gateway Wallet',
  '0x0022222abe238cc2c7bb1f21003f0a260052475b': 'Gateway Minter',
};

const BY_CHAIN: Record<number, ReadonlyMap<string, string>> = {
  5042: new Map(Object.entries({ ...EVERYWHERE, ...MAINNET })),
  5042002: new Map(Object.entries({ ...EVERYWHERE, ...TESTNET })),
};

/** Null for an unknown contract. `address` is in lower case. */
export function knownContract(chainId: number, address: string): string | null {
  return BY_CHAIN[chainId]?.get(address) ?? null;
}
