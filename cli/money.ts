import { formatUnits } from '../src/lib/units.ts';

// Amounts as people write them, and the contracts that are USDC.

/** USDC's ERC-20 interface has 6 decimals, an amount in sats 3 of a millisatoshi. */
const USDC_DECIMALS = 6;
const SAT_DECIMALS = 3;

/**
 * Converts decimal USDC (or USD, as prices are written) to base units, exactly. Null for anything else.
 * It uses no float, because a ceiling must not be rounded.
 */
export function parseUsdc(text: string): bigint | null {
  const match = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(text);
  return match ? BigInt(`${match[1]}${(match[2] ?? '').padEnd(USDC_DECIMALS, '0')}`) : null;
}

/** Base units as decimal USDC with its name: 1000n is "0.001 USDC". */
export function formatUsdc(units: bigint): string {
  return `${formatUnits(units, USDC_DECIMALS)} USDC`;
}

/**
 * Converts decimal USD to base units, rounded down, so that an amount is above the price exactly when it is above the
 * result. Null for anything else.
 */
export function parseUsd(text: string): bigint | null {
  const match = /^(\d{1,12})(?:\.(\d{1,30}))?$/.exec(text);
  return match ? parseUsdc(`${match[1]}.${(match[2] ?? '').slice(0, USDC_DECIMALS).padEnd(1, '0')}`) : null;
}

/** Parses whole sats, as a person writes a limit, into millisatoshis. Null for anything else. */
export function parseSats(text: string): bigint | null {
  return /^\d{1,15}$/.test(text) ? BigInt(text) * 1000n : null;
}

/** Millisatoshis as sats with their name: 12500n is "12.5 sat". */
export function formatSats(msat: bigint): string {
  return `${formatUnits(msat, SAT_DECIMALS)} sat`;
}

/**
 * The longest that this buyer leaves an authorization open, in seconds, also where a seller allows a week. Whoever
 * holds
 * it can charge it until then. A payment is presented for up to seven minutes, and a seller settles it within seconds.
 */
export const VALIDITY_SECONDS = 600;

/** A USDC contract's EIP-712 domain, without its chain and its address. */
export interface UsdcToken {
  readonly name: string;
  readonly version: string;
}

/**
 * The contracts that are USDC with EIP-3009, by CAIP-2 network: those of the stock client's table, which a test
 * compares,
 * and Arc's. A contract that only calls itself USDC is not among them.
 */
const TOKENS: readonly (readonly [network: string, asset: string, name: string, version: string])[] = [
  ['eip155:5042', '0x3600000000000000000000000000000000000000', 'USDC', '2'],
  ['eip155:5042002', '0x3600000000000000000000000000000000000000', 'USDC', '2'],
  ['eip155:8453', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', 'USD Coin', '2'],
  ['eip155:84532', '0x036CbD53842c5426634e7929541eC2318f3dCF7e', 'USDC', '2'],
  ['eip155:1', '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', 'USD Coin', '2'],
  ['eip155:43114', '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E', 'USD Coin', '2'],
  ['eip155:143', '0x754704Bc059F8C67012fEd69BC8A327a5aafb603', 'USDC', '2'],
  ['eip155:137', '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359', 'USD Coin', '2'],
  ['eip155:42161', '0xaf88d065e77c8cC2239327C5EDb3A432268e5831', 'USD Coin', '2'],
  ['eip155:421614', '0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d', 'USD Coin', '2'],
  ['eip155:50', '0xfA2958CB79b0491CC627c1557F441eF849Ca8eb1', 'USDC', '2'],
  ['eip155:51', '0xb5AB69F7bBada22B28e79C8FFAECe55eF1c771D4', 'USDC', '2'],
  ['eip155:38833', '0xA5b8BF902b2844dA17d4506cc827F7F1681735E7', 'USDC', '1'],
  ['eip155:42220', '0xcebA9300f2b948710d2653dD7B07f33A8B32118C', 'USDC', '2'],
  ['eip155:11142220', '0x01C5C0122039549AD1493B8220cABEdD739BC44E', 'USDC', '2'],
  ['eip155:1329', '0xe15fC38F6D8c56aF07bbCBe3BAf5708A2Bf42392', 'USDC', '2'],
  ['eip155:1328', '0x4fCF1784B31630811181f670Aea7A7bEF803eaED', 'USDC', '2'],
];

/** The USDC contract at this address of this network. Null for any other: another asset's amount has another unit. */
export function usdcToken(network: string, asset: string): UsdcToken | null {
  const found = TOKENS.find(([on, at]) => on === network && at.toLowerCase() === asset.toLowerCase());
  return found ? { name: found[2], version: found[3] } : null;
}

/** USDC's address on a network; null where it is not known here. */
export function usdcOn(network: string): string | null {
  return TOKENS.find(([on]) => on === network)?.[1] ?? null;
}
