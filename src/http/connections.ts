import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { BlockList, isIPv6, type Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import { Counter, Gauge, type Registry } from 'prom-client';
import { AppError } from '../errors.ts';
import type { Common } from '../lib/common.ts';
import { CLIENTS_PER_SITE, clientKey, createMinuteWindows, isLoopback, siteKey } from '../lib/limits/count.ts';
import { rawAnswer } from './problems.ts';
import { createRequestIds } from './server-options.ts';

// The limits of connections, of one client (and its IPv6 /48) and of all. A refused connection gets a 503 that no
// parser reads, and time to read it.

/** 0 is off. */
interface ConnectionLimits {
  /** Of an IPv4 address or IPv6 /64, at most its share of the total. A /48 may have four times as many. */
  readonly perClient: number;
  /** Null: as many as the process may open files, less a reserve. */
  readonly most: number | null;
}

interface Refusal {
  readonly limit: 'client' | 'all';
  readonly client: string;
  readonly connections: number;
}

const AT_CLIENT =
  'a client holds as many connections as CONNECTIONS_PER_CLIENT and its share of MAX_CONNECTIONS allow, and gets 503 ' +
  'for more: if it is a proxy, name it in TRUSTED_PROXIES';
const AT_ALL =
  'as many connections are open as MAX_CONNECTIONS allows; new ones get 503, those of loopback and TRUSTED_PROXIES ' +
  'once their reserve is used up too';

/**
 * Limits connections, so that one client cannot hold all of them. One beyond a limit is closed before the HTTP parser
 * sees it, so nothing is sold on it. Loopback and trusted proxies count in the total alone, and have a reserve of it.
 */
export function limitConnections(
  server: Server,
  { clock, log }: Common,
  limits: ConnectionLimits,
  trustedProxies: readonly string[],
  metrics: Registry,
): void {
  const most = limits.most ?? connectionsWithin(descriptorLimit());
  const { ofClient, ofSite, reserved } = sharesOf(limits.perClient, most);
  const isProxy = matcherOf(trustedProxies);
  const held = new Map<string, number>();
  const logged = createMinuteWindows(clock);
  const refuse = createRefusals();
  let open = 0;
  const refused = publish(metrics, () => open, most);

  const isTrusted = (address: string): boolean => isLoopback(address) || isProxy(address);

  function limitsOf(address: string): (readonly [key: string, limit: number])[] {
    if (ofClient === 0 || isTrusted(address)) return [];
    const client = clientKey(address);
    const site = siteKey(client);
    return [[client, ofClient], ...(site === null ? [] : ([[site, ofSite]] as const))];
  }

  function refusalOf(address: string, counted: ReturnType<typeof limitsOf>): Refusal | null {
    const isFull = most > 0 && open >= (isTrusted(address) ? most : most - reserved);
    if (isFull) return { limit: 'all', client: 'all', connections: open };
    const full = counted.find(([key, limit]) => (held.get(key) ?? 0) >= limit);
    return full ? { limit: 'client', client: full[0], connections: full[1] } : null;
  }

  function count(key: string, change: 1 | -1): void {
    const now = (held.get(key) ?? 0) + change;
    if (now > 0) held.set(key, now);
    else held.delete(key);
  }

  function hold(socket: Socket, counted: ReturnType<typeof limitsOf>): void {
    open += 1;
    for (const [key] of counted) count(key, 1);
    socket.once('close', () => {
      open -= 1;
      for (const [key] of counted) count(key, -1);
    });
  }

  const accept = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const counted = limitsOf(address);
    const refusal = refusalOf(address, counted);
    if (refusal === null) {
      hold(socket, counted);
      for (const listener of accept) listener.call(server, socket);
      return;
    }
    const { limit, client, connections } = refusal;
    refused.inc({ limit });
    if (logged.count(client).count === 1)
      log.warn({ ...(limit === 'client' && { client }), connections }, limit === 'client' ? AT_CLIENT : AT_ALL);
    refuse(socket, limit);
  });
}

/** Descriptors that connections leave to databases, to our own requests and to refusals. */
const RESERVED_DESCRIPTORS = 512;
/** What POSIX systems usually allow, where the system does not tell. */
const USUAL_DESCRIPTORS = 1024;
/** A small limit is shared by halves. */
function connectionsWithin(descriptors: number): number {
  return Math.max(descriptors - RESERVED_DESCRIPTORS, Math.floor(descriptors / 2));
}

/** Node has raised the soft limit to the hard one by then. */
function descriptorLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return Number(soft ?? Number.MAX_SAFE_INTEGER);
  } catch {
    return USUAL_DESCRIPTORS;
  }
}

/** Connections that only loopback and trusted proxies may have, so that probes and the operator get in. */
const RESERVED_CONNECTIONS = 32;
/** The parts of the total that the reserve, one client and one IPv6 /48 may have at most. */
const RESERVED_SHARE = 8;
const CLIENT_SHARE = 8;
const SITE_SHARE = 4;

/** At least one for a client; `reserve` is for loopback and proxies. 0 is no limit. */
function sharesOf(perClient: number, most: number): { ofClient: number; ofSite: number; reserved: number } {
  const perSite = perClient * CLIENTS_PER_SITE;
  if (most === 0) return { ofClient: perClient, ofSite: perSite, reserved: 0 };
  const shareOf = (limit: number, parts: number): number => Math.min(limit, Math.max(1, Math.floor(most / parts)));
  return {
    ofClient: shareOf(perClient, CLIENT_SHARE),
    ofSite: shareOf(perSite, SITE_SHARE),
    reserved: Math.min(RESERVED_CONNECTIONS, Math.floor(most / RESERVED_SHARE)),
  };
}

function matcherOf(ranges: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const [base = '', bits] = range.split('/');
    const family = isIPv6(base) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(base, family);
    else list.addSubnet(base, Number(bits), family);
  }
  return (address) => {
    if (!ipaddr.isValid(address)) return false;
    const plain = ipaddr.process(address);
    return list.check(plain.toString(), plain.kind());
  };
}

/** A refused client gets this long to read its answer and to close. */
const LINGER_MS = 1000;
/** Refused connections that linger at once. Others are closed with the answer, which their client may then lose. */
const MOST_LINGERING = 64;
const RETRY_AFTER_SECONDS = 5;

const UNREAD = 'No request was read on this one: present a payment that it had again.';
const DETAIL = {
  client: `Your network holds as many connections as one client may: use those that are open, or close some. ${UNREAD}`,
  all: `As many connections are open as the service takes. ${UNREAD}`,
} as const;

function createRefusals(): (socket: Socket, limit: Refusal['limit']) => void {
  const nextId = createRequestIds();
  let lingering = 0;
  return (socket, limit) => {
    // A payment that is presented again may have been taken before.
    const options = { charged: 'unknown', retryAfterSeconds: RETRY_AFTER_SECONDS } as const;
    const problem = new AppError(503, 'too_many_connections', DETAIL[limit], options);
    socket.on('error', () => {});
    socket.end(rawAnswer(problem, nextId()));
    if (lingering >= MOST_LINGERING) return socket.destroySoon();
    lingering += 1;
    // Unread bytes would make the close a reset, and the client would lose the answer.
    socket.resume();
    const close = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => {
      clearTimeout(close);
      lingering -= 1;
    });
  };
}

/** Returns the counter of refusals. */
function publish(registry: Registry, open: () => number, most: number): Counter<'limit'> {
  const registers = [registry];
  new Gauge({
    name: 'http_connections',
    help: 'Open connections of clients',
    registers,
    collect() {
      this.set(open());
    },
  });
  const help = 'The most connections that may be open (MAX_CONNECTIONS); 0 is no limit';
  new Gauge({ name: 'http_connections_limit', help, registers }).set(most);
  const refused = new Counter({
    name: 'http_connections_refused_total',
    help: 'Connections that got 503 at the limit of their client (CONNECTIONS_PER_CLIENT) or of all (MAX_CONNECTIONS)',
    labelNames: ['limit'],
    registers,
  });
  for (const limit of ['client', 'all'] as const) refused.inc({ limit }, 0);
  return refused;
}
