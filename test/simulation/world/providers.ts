import { WORLD } from '../engine/owner.ts';
import type { Random } from '../engine/random.ts';
import type { Scheduler } from '../engine/scheduler.ts';
import type { Host, WireAnswer, WireFault, WireRequest } from '../network/wire.ts';
import type { Chain } from './chain/chain.ts';
import { fromHex, keccak, toHex } from './chain/keys.ts';
import { createRpc, type RpcAnswer } from './chain/rpc.ts';

/** What a provider does wrong at present. */
export interface ProviderMood {
  /** Blocks that it is behind. */
  lag: number;
  /** Requests a second; null is any number. */
  perSecond: number | null;
  /** How it says that there were too many: by HTTP, or inside of an answer. */
  limitSays: '429' | '-32011';
  /** How its connections fail, and how often of 100 requests. */
  fault: WireFault | null;
  faultPercent: number;
  wrongChain: boolean;
  /** Takes transactions and shows them to nobody. */
  hoards: boolean;
  /** Tells receipts only now and then. */
  hidesReceipts: boolean;
  /** Does not run creation code in calls. */
  refusesCreation: boolean;
}

const HEALTHY: Readonly<ProviderMood> = {
  lag: 0,
  perSecond: null,
  limitSays: '-32011',
  fault: null,
  faultPercent: 100,
  wrongChain: false,
  hoards: false,
  hidesReceipts: false,
  refusesCreation: false,
};

interface ProvidersOptions {
  readonly chain: Chain;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly count: number;
  /** What each takes in a second when it is well; null is any number. */
  readonly perSecond: number | null;
}

interface Question {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

const limited: RpcAnswer = { error: { code: -32011, message: 'request limit reached' } };

/** What a node of another chain says: nothing of ours is there. */
function elsewhere(method: string): RpcAnswer {
  const word = `0x${'0'.repeat(64)}`;
  const reported: Record<string, unknown> = {
    eth_chainId: '0x1',
    eth_blockNumber: '0x1312d00',
    eth_gasPrice: '0x1',
    eth_getBalance: '0x0',
    eth_call: word,
    eth_getTransactionCount: '0x0',
    eth_getLogs: [],
    eth_getTransactionReceipt: null,
    eth_getCode: '0x',
  };
  if (method in reported) return { result: reported[method] };
  return { error: { code: -32000, message: 'invalid chain id for signer' } };
}

/** RPC providers over the one chain, each in its own mood. */
export function createProviders({ chain, scheduler, random, count, perSecond }: ProvidersOptions) {
  const usual = { ...HEALTHY, perSecond };
  const moods: ProviderMood[] = Array.from({ length: count }, () => ({ ...usual }));
  let requests = 0;
  const upsets: { readonly fromMs: number; readonly toMs: number }[] = [];

  function provider(mood: ProviderMood): Host {
    const head = () => Math.max(0, chain.head() - mood.lag);
    const rpc = createRpc(chain, { head, takesCreation: () => !mood.refusesCreation });
    // A bucket that holds a second's worth.
    let tokens = mood.perSecond ?? 0;
    let filledMs = scheduler.nowMs();

    function allows(): boolean {
      if (mood.perSecond === null) return true;
      const now = scheduler.nowMs();
      tokens = Math.min(mood.perSecond, tokens + ((now - filledMs) * mood.perSecond) / 1000);
      filledMs = now;
      if (tokens < 1) return false;
      tokens -= 1;
      return true;
    }

    function answer({ method, params }: Question): RpcAnswer {
      if (mood.wrongChain) return elsewhere(method);
      if (mood.hoards && method === 'eth_sendRawTransaction')
        return { result: toHex(keccak(fromHex(String(params[0])))) };
      if (mood.hidesReceipts && method === 'eth_getTransactionReceipt' && random.chance(0.6)) return { result: null };
      return rpc(method, params);
    }

    function serve({ body }: WireRequest): WireAnswer {
      requests += 1;
      const refused = !allows();
      if (refused && mood.limitSays === '429') return { status: 429, body: 'too many requests' };
      const parsed = JSON.parse(body) as Question | Question[];
      const wrap = (question: Question) => ({
        jsonrpc: '2.0',
        id: question.id,
        ...(refused ? limited : answer(question)),
      });
      const reported = Array.isArray(parsed)
        ? refused
          ? { jsonrpc: '2.0', id: null, ...limited }
          : parsed.map(wrap)
        : wrap(parsed);
      return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(reported) };
    }

    return {
      serve: (request, reply) => reply(serve(request)),
      fault: () => (mood.fault !== null && random.chance(mood.faultPercent / 100) ? mood.fault : null),
    };
  }

  const named = moods.map((mood, at) => [`http://rpc${at}.test`, provider(mood)] as const);
  return {
    hosts: named,
    urls: named.map(([origin]) => origin),
    moods,
    requests: () => requests,
    /** From here on nothing is wrong with any, and none has a limit. */
    heal: () => {
      usual.perSecond = null;
      for (const mood of moods) Object.assign(mood, usual);
    },
    /** Whether one of them was not well at some time between. */
    wereUpset: (fromMs: number, toMs: number): boolean =>
      upsets.some((one) => one.fromMs <= toMs && one.toMs >= fromMs),
    /** Puts one provider into a mood for a while. */
    upset(at: number, mood: Partial<ProviderMood>, ms: number): void {
      const chosen = moods[at % moods.length] as ProviderMood;
      Object.assign(chosen, mood);
      upsets.push({ fromMs: scheduler.nowMs(), toMs: scheduler.nowMs() + ms });
      scheduler.after(ms, WORLD, 'provider heals', () => Object.assign(chosen, usual));
    },
  };
}

export type Providers = ReturnType<typeof createProviders>;
