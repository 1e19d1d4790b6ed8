import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { plainText } from '../../src/lib/untrusted.ts';
import { formatSats, formatUsdc } from '../money.ts';
import type { Buyer, Price } from '../port.ts';
import { amountText } from './results.ts';

// Whether a payment may be made: by itself, or by a person's word, whom the host asks (MCP elicitation). The question
// is of this program's own words. Of the seller it has the host, the address and the price, and no text.

/** What bounds payments that nobody is asked about. */
export interface AskTerms {
  readonly buyer: Buyer;
  /** USD base units, and millisatoshis. */
  readonly askAbove: { readonly units: bigint; readonly msat: bigint };
  /** How long a person has. The seller's offer may end sooner: then nothing is paid. */
  readonly askWithinMs: number;
}

/** What a person is told of a call. */
export interface Asked {
  readonly tool: string;
  readonly host: string;
  readonly given: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
}

const MOST_ARGUMENTS = 400;

/** Null: it may be paid. Else why not, in words for the host. */
export type Objection = string | null;

export async function objectionTo(server: Server, terms: AskTerms, asked: Asked, price: Price): Promise<Objection> {
  const gone = 'the host has cancelled the call, or has gone';
  if (asked.signal.aborted) return gone;
  const cause = causeToAsk(terms, asked.host, price);
  if (cause === null) return null;
  if (!server.getClientCapabilities()?.elicitation?.form)
    return `${cause.why}, and this host cannot ask a person (no MCP elicitation): ${cause.remedy}`;
  const answer = await ask(server, asked, terms.askWithinMs, question(asked, price, cause.why));
  return asked.signal.aborted ? gone : answer;
}

/** Why a person is to be asked; null where nobody has to be. */
function causeToAsk({ buyer, askAbove }: AskTerms, host: string, { amount }: Price) {
  const { units, msat } = amount;
  const above = (price: string, most: string, option: string) => ({
    why: `${price} is above ${most}, and from there on a person is asked`,
    remedy: `a person may raise ${option} in the host's configuration`,
  });
  if (msat !== null && msat > askAbove.msat)
    return above(formatSats(msat), formatSats(askAbove.msat), '--ask-above-sats');
  if (units !== null && units > askAbove.units)
    return above(formatUsdc(units), formatUsdc(askAbove.units), '--ask-above');
  const isBounded = buyer.budgets.list().some(({ scope, unit }) => {
    const holds = typeof scope === 'string' ? scope !== 'call' : scope.host === host;
    return holds && (unit === 'usdc' || msat !== null);
  });
  if (isBounded) return null;
  return {
    why: 'no budget of an hour or a day bounds these payments, so a person is asked about each',
    remedy: 'a person sets one in a terminal: percall wallet budget --day 1',
  };
}

type Question = Parameters<Server['elicitInput']>[0];

/** What a person reads. */
function question({ tool, host, given }: Asked, { amount, payTo, network, deposit }: Price, why: string): Question {
  const money = amountText(amount);
  const message = [
    `Pay ${money} to ${host} for a call of its tool ${tool}?`,
    `To ${plainText(payTo, 100)} on ${plainText(network, 60)}, asked because ${why}.`,
    ...(deposit === null ? [] : [`It may first deposit into a payment channel: ${deposit}.`]),
    `Arguments: ${plainText(JSON.stringify(given), MOST_ARGUMENTS)}`,
  ].join('\n');
  const pay = { type: 'boolean', title: `Pay ${money}`, default: false } as const;
  return { mode: 'form', message, requestedSchema: { type: 'object', properties: { pay }, required: ['pay'] } };
}

/** Asks once. Only a ticked box counts as a yes: some hosts accept an empty form by themselves. */
async function ask(server: Server, { signal }: Asked, timeout: number, asked: Question): Promise<Objection> {
  try {
    const { action, content } = await server.elicitInput(asked, { signal, timeout });
    if (action === 'accept' && content?.pay === true) return null;
    return action === 'cancel' ? 'the person closed the question' : 'the person declined';
  } catch (error) {
    const isLate = error instanceof McpError && error.code === ErrorCode.RequestTimeout;
    return isLate ? 'nobody answered the question in time' : 'the host could not ask the person';
  }
}
