import { bytesWords, readerOf, word } from './abi.ts';
import { type ChannelTerms, COLLECTOR, SETTLEMENT } from './channel-terms.ts';
import type { CallResult, Env, Frame, Log } from './frame.ts';
import type { Hex } from './keys.ts';
import { createSettlement } from './settlement.ts';
import { unitsOf } from './state.ts';
import { SELECTORS, type Token, USDC } from './token.ts';
import { askWallet } from './wallets.ts';

/** Multicall3's `getBlockNumber()`. */
const BLOCK_NUMBER: Hex = '0x42cbb15c';
export const MULTICALL3: Hex = '0xca11bde05977b3631167028862be2a173976ca11';

export function envOf(given: Omit<Env, 'logs' | 'log'>): Env {
  const logs: Log[] = [];
  const log = (address: Hex, topics: readonly Hex[], value: bigint | null) =>
    void logs.push({ address, topics, data: value === null ? '0x' : `0x${word(value)}` });
  return { ...given, logs, log };
}

const blockNumber = ({ block }: Env): CallResult => ({ ok: true, data: `0x${word(block)}`, gasUsed: 400, why: '' });
const fails = (why: string, gasUsed: number): CallResult => ({ ok: false, data: '0x', gasUsed, why });

/** Runs calls against a view. What a failed call had changed is undone, its logs too. */
export function createExecutor(token: Token, terms: ChannelTerms) {
  const settlement = createSettlement(terms, call);

  function call(env: Env, frame: Frame): CallResult {
    const mark = env.view.mark();
    const logs = env.logs.length;
    const result = route(env, frame);
    if (result.ok && result.gasUsed <= frame.gas) return result;
    env.view.undo(mark);
    env.logs.length = logs;
    return result.ok || result.gasUsed > frame.gas ? fails('out of gas', frame.gas) : result;
  }

  function route(env: Env, frame: Frame): CallResult {
    if (frame.to === USDC) return token.call(env, frame);
    if (frame.to === MULTICALL3) return frame.data === BLOCK_NUMBER ? blockNumber(env) : aggregate(env, frame);
    if (frame.to === SETTLEMENT) return settlement.call(env, frame);
    if (frame.to === COLLECTOR) return fails('OnlyX402BatchSettlement', 3_000);
    const wallet = env.view.get(`code ${frame.to}`) ?? null;
    if (wallet === null || !frame.data.startsWith(SELECTORS.isValid, 2))
      return { ok: true, data: '0x', gasUsed: 0, why: '' };
    const args = readerOf(frame.data.slice(10));
    const [digest, signature] = [args.hash(0), args.bytes(32)].map((hex) => Buffer.from(hex.slice(2), 'hex'));
    const { gasPrice, origin, relayer } = env;
    const asked = {
      digest: digest as Buffer,
      signature: signature as Buffer,
      gas: frame.gas,
      gasPrice,
      origin,
      relayer,
    };
    const { gasUsed, valid } = askWallet(wallet, asked);
    if (valid === null) return fails('out of gas', gasUsed);
    return { ok: true, data: `0x${(valid ? '1626ba7e' : 'ffffffff').padEnd(64, '0')}`, gasUsed, why: '' };
  }

  /** `aggregate3`: each call may fail by itself where it says so. */
  function aggregate(env: Env, frame: Frame): CallResult {
    const args = readerOf(frame.data.slice(10));
    const list = args.short(0) + 32;
    const count = args.short(args.short(0));
    const results: string[] = [];
    let used = 5_000;
    for (let at = 0; at < count; at++) {
      const base = list + args.short(list + 32 * at);
      const [to, mayFail, data] = [args.address(base), args.number(base + 32) === 1n, args.bytes(base + 64, base)];
      const gas = Math.floor(((frame.gas - used) * 63) / 64);
      const result = call(env, { from: MULTICALL3, to, data, gas, used: 0 });
      used += result.gasUsed + 3_000;
      if (!result.ok && !mayFail) return fails('Multicall3: call failed', Math.min(used, frame.gas));
      results.push(word(result.ok ? 1 : 0) + word(64) + bytesWords(result.data));
    }
    let offset = 32 * count;
    const offsets = results.map((result) => {
      const own = word(offset);
      offset += result.length / 2;
      return own;
    });
    return {
      ok: true,
      data: `0x${word(32)}${word(count)}${offsets.join('')}${results.join('')}`,
      gasUsed: used,
      why: '',
    };
  }

  /**
   * Creation code that is never deployed: the service's own reader of many payers. Its arguments are found from the end of the code: the token, an
   * offset of 64, a count, and so many pairs of an address and a nonce.
   */
  function readPayers(env: Env, data: Hex): CallResult {
    const digits = data.slice(2);
    const questions = questionsIn(digits);
    if (!questions) return fails('invalid opcode', 100_000);
    const words = questions.map(({ from, nonce }) => {
      const used = env.view.get(`authorization ${from}${nonce}`) === true;
      const hasCode = (env.view.get(`code ${from}`) ?? null) !== null;
      return word((unitsOf(env.view, from) << 8n) | 1n | (used ? 2n : 0n) | (hasCode ? 4n : 0n));
    });
    return {
      ok: true,
      data: `0x${word(env.block)}${words.join('')}`,
      gasUsed: 60_000 + 20_000 * words.length,
      why: '',
    };
  }

  return { call, readPayers };
}

function questionsIn(digits: string): { from: Hex; nonce: Hex }[] | null {
  for (let count = 1; count <= 500; count++) {
    const at = digits.length - 64 * (2 * count + 3);
    if (at < 0) return null;
    if (digits.slice(at + 64, at + 192) !== word(64) + word(count)) continue;
    if (`0x${digits.slice(at + 24, at + 64)}` !== USDC) continue;
    const pairs = digits.slice(at + 192);
    return Array.from({ length: count }, (_, pair) => ({
      from: `0x${pairs.slice(128 * pair + 24, 128 * pair + 64)}` as Hex,
      nonce: `0x${pairs.slice(128 * pair + 64, 128 * pair + 128)}` as Hex,
    }));
  }
  return null;
}

/** Gas of a transaction before anything runs: 16 for each byte of calldata that is not zero, 4 for one that is. */
export function intrinsicGas(data: Hex): number {
  let gas = 21_000;
  for (let at = 2; at < data.length; at += 2)
    gas += data.charCodeAt(at) === 48 && data.charCodeAt(at + 1) === 48 ? 4 : 16;
  return gas;
}
