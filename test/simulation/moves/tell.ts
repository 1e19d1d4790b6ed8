import type { Move, Presented, Trap } from './move.ts';
import { tellChannelMove } from './tell-channels.ts';

const seconds = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${Math.round(ms / 100) / 10} s`);
const faultOf = (mood: object): string =>
  Object.entries(mood)
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ');

/** A trap as it is told: what the payer does, or what becomes of the payment. */
const told = (trap: Trap): string => (trap.startsWith('is ') ? `it ${trap}` : `its payer ${trap}`);

function way({ from, at, identifier, abandonMs, viaTools }: Presented): string {
  return [
    `from ${from} at instance ${at}`,
    viaTools ? 'as a tool call' : '',
    identifier === null ? '' : `with identifier ${identifier}`,
    abandonMs === null ? '' : `hanging up after ${abandonMs} ms`,
  ]
    .filter((part) => part !== '')
    .join(', ');
}

/** A move as a person reads it. */
export function tellMove(move: Move): string {
  const reported = sentence(move);
  return move.pauseMs > 0 ? `${reported}; then ${seconds(move.pauseMs)} pass` : reported;
}

function sentence(move: Move): string {
  const channel = tellChannelMove(move, way);
  if (channel !== null) return channel;
  switch (move.do) {
    case 'buy':
      return `${move.payer} signs ${move.id} for ${move.route} over ${move.rail}, valid for ${move.validFor} s, and presents it ${way(move)}`;
    case 'again':
      return `${move.of} is presented again, ${changed(move.change, move.route)}, ${way(move)}`;
    case 'race':
      return `${move.of} is presented ${move.times} times at once, ${changed(move.change, move.route)}, ${way(move)}`;
    case 'cancel':
      return `the payer of ${move.of} cancels it on the chain`;
    case 'spend elsewhere':
      return `the payer of ${move.of} spends its nonce for somebody else on the chain`;
    case 'third party sends':
      return `a third party sends ${move.of} to the chain`;
    case 'trap':
      return `as soon as a payment of ${move.payer} leaves the service, ${told(move.trap)}${move.backMs === null ? '' : ` for ${seconds(move.backMs)}`}`;
    case 'move balance':
      return `${move.payer} moves its balance away${move.backMs === null ? '' : ` for ${seconds(move.backMs)}`}`;
    case 'program':
      return `${move.payer} gets code that takes ${move.trusting ? 'any signature' : 'its owner’s signature'}; when ${move.turnsWhen}: ${move.turnsTo}`;
    case 'shed code':
      return `${move.payer} loses its code`;
    case 'wait':
      return `${seconds(move.ms)} pass`;
    case 'leap':
      return `the machine is suspended for ${seconds(move.ms)}`;
    case 'flood':
      return `for ${move.seconds} s ${move.perSecond} requests a second with ${move.kind} come from ${move.addresses} ${move.ipv6 ? 'IPv6 networks of one /48' : 'addresses'}`;
    case 'offer':
      return `an invoice ${move.id} is asked for ${move.route} ${way(move)}`;
    case 'pay':
      return `${move.of} is paid`;
    case 'redeem':
      return `the proof of ${move.of} is presented ${move.times === 1 ? 'once' : `${move.times} times at once`}, ${changed(move.change, move.route)}, ${way(move)}`;
    case 'claim':
      return `the proof of ${move.of} is claimed through the facilitator from ${move.from} at instance ${move.at}`;
    case 'forge':
      return `another tenant of the node makes an invoice ${move.id} of his own for what ${move.of} was offered for`;
    default:
      return trouble(move as Trouble);
  }
}

function changed(change: string, route: string): string {
  if (change === 'nothing') return 'unchanged';
  return change.includes('request') ? `with ${change} changed (to ${route})` : `with ${change} changed`;
}

type Trouble = Extract<
  Move,
  {
    readonly do:
      | 'deposit'
      | 'hand over'
      | 'batch'
      | 'kill'
      | 'stop'
      | 'sleep'
      | 'provider'
      | 'facilitator'
      | 'gateway'
      | 'node'
      | 'source'
      | 'ledger'
      | 'disk'
      | 'token'
      | 'fee'
      | 'stall'
      | 'moody'
      | 'drop pending'
      | 'relayer gas'
      | 'price';
  }
>;

function trouble(move: Trouble): string {
  switch (move.do) {
    case 'deposit':
      return move.units < 0
        ? `${move.payer} spends ${-move.units} base units of its deposit elsewhere`
        : `${move.payer} deposits ${move.units} base units at the Gateway`;
    case 'hand over':
      return `the payer of ${move.of} hands it to the Gateway himself, made out to ${move.to}`;
    case 'batch':
      return 'the Gateway sends a batch to the chain';
    case 'kill':
      return `instance ${move.at} is killed after ${move.afterEvents} more events of its own and starts again ${seconds(move.downMs)} later`;
    case 'stop':
      return `instance ${move.at} is stopped and starts again ${seconds(move.downMs)} later`;
    case 'sleep':
      return `instance ${move.at} sleeps for ${seconds(move.ms)}`;
    case 'provider':
      return `for ${seconds(move.ms)} RPC provider ${move.number} is not well (${faultOf(move.mood)})`;
    case 'facilitator':
    case 'gateway':
    case 'node':
      return `for ${seconds(move.ms)} the ${move.do} is not well (${faultOf(move.mood)})`;
    case 'source':
      return `for ${seconds(move.ms)} ${move.which === 3 ? 'the source of data' : `exchange ${move.which}`} is not well (${faultOf(move.mood)})`;
    case 'ledger':
      return `for ${seconds(move.ms)} the way to the shared ledger is ${move.how}, ${move.percent} of 100 times`;
    case 'disk':
      return `for ${seconds(move.ms)} the disk of instance ${move.at} is ${move.how}`;
    case 'token':
      return `for ${seconds(move.ms)} the token is not well: ${move.how}`;
    case 'fee':
      return `for ${seconds(move.ms)} gas costs ${move.gwei} gwei`;
    case 'stall':
      return `for ${seconds(move.ms)} no block comes`;
    case 'moody':
      return `for ${seconds(move.ms)} the endpoints fail`;
    case 'drop pending':
      return 'the nodes forget every transaction that waits';
    case 'relayer gas':
      return `for ${seconds(move.ms)} the relayer has ${move.usdc} USDC`;
    case 'price':
      return `bitcoin moves by ${move.percent} %`;
  }
}
