import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';

// Who is counted: a client (an IPv4 address or an IPv6 /64) and its site (the /48); and who is who on redelivery. How:
// a window counts a key's events in its own minute, here or in a shared place. A client counts under its own window and
// its site's; the nearer limit holds. An event counts under all its limits or under none.

/** For text that is no address: a proxy may pass on any. */
const MAX_TEXT = 64;
const NETWORK_SUFFIX = '::/64';
/** RFC 4291, 2.5.5.2. The library's `isIPv4MappedAddress` compares with every special range. */
const IPV4_MAPPED = ipaddr.IPv6.parseCIDR('::ffff:0:0/96');

/** A site's limit in clients': neighbours at one hoster can share a /48, and its owner is limited. */
export const CLIENTS_PER_SITE = 4;

/** The IPv4 address, or the IPv6 /64, which one household or server gets. `::ffff:` is IPv4. */
export function clientKey(ip: string): string {
  if (!ip.includes(':')) return ip.slice(0, MAX_TEXT);
  if (!ipaddr.IPv6.isValid(ip)) return ip.slice(0, MAX_TEXT).toLowerCase();
  const address = ipaddr.IPv6.parse(ip);
  if (address.match(IPV4_MAPPED)) return address.toIPv4Address().toString();
  const network = address.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}${NETWORK_SUFFIX}`;
}

/** The /48 around a client's /64 (RFC 6177), else null. Without a limit of its own, one host is 65,536 clients. */
export function siteKey(client: string): string | null {
  if (!client.endsWith(NETWORK_SUFFIX)) return null;
  return `${client.slice(0, -NETWORK_SUFFIX.length).split(':').slice(0, 3).join(':')}::/48`;
}

export function keysOf(client: string): readonly string[] {
  const site = siteKey(client);
  return site === null ? [client] : [client, site];
}

interface Received {
  /** The peer's address, or the one that a trusted proxy saw. */
  readonly ip: string;
  /** Only with trusted proxies: the peer's address, then those that trusted proxies named. */
  readonly ips?: readonly string[] | undefined;
  readonly headers: IncomingHttpHeaders;
}

/** Shows on redelivery that the same client asks. A proxy's clients share its address: each gets a random one. */
export function identityOf(request: Received): string {
  return hasOwnAddress(request) ? clientKey(request.ip) : randomUUID();
}

/** Straight or through trusted proxies. Another peer's header proves nothing: clients write them. */
export function hasOwnAddress({ ip, ips, headers }: Received): boolean {
  if (!ipaddr.isValid(ip)) return false;
  return (ips !== undefined && ips.length > 1) || !isForwarded(headers);
}

/** Of RFC 7239, 9110, 8586, nginx, Cloudflare, Akamai, Fly, Fastly, Envoy, Apache and load balancers. */
const NAMES: ReadonlySet<string> = new Set([
  ...['forwarded', 'via', 'cdn-loop', 'x-real-ip', 'cf-connecting-ip', 'true-client-ip', 'fly-client-ip'],
  ...['fastly-client-ip', 'x-envoy-external-address', 'x-client-ip', 'x-cluster-client-ip'],
]);
const PREFIX = 'x-forwarded-';

/** By the headers that proxies usually add. A proxy that adds none passes for the client. */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  for (const name in headers) if (NAMES.has(name) || name.startsWith(PREFIX)) return true;
  return false;
}

/** False without an address, and for text that is none. */
export function isLoopback(address: string | undefined): boolean {
  return address !== undefined && ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
}

/**
 * The newest keys: what clients and sources can fill is bounded. Read with `peek`: `get` would make a key new. It takes
 * memory as it fills; the library's own `max` costs a start 1.4 ms for 10,000 places.
 */
export const boundedMap = <K extends {}, V extends {}>(most: number): LRUCache<K, V> =>
  new LRUCache({ maxSize: most, sizeCalculation: () => 1 });

// --- Windows of a minute

export const WINDOW_MS = 60_000;
/** Some 2 MB. With more clients in a minute the oldest window is dropped. */
export const MAX_CLIENTS = 10_000;

interface Window {
  count: number;
  endsAtMs: number;
}

/** `resetSeconds` until the minute ends, rounded up. */
export interface Counted {
  readonly count: number;
  readonly resetSeconds: number;
}

/** A client's minute begins with its first event. */
export interface MinuteWindows {
  count(client: string): Counted;
  /** For a counted event that did not happen. Does nothing when its minute has ended. */
  takeBack(client: string): void;
}

export interface ReadableWindows extends MinuteWindows {
  /** 0, with 0 seconds, when the minute has ended or nothing was counted. */
  read(client: string): Counted;
}

/** They may be on another machine, and reject when it does not answer. */
export interface SharedWindows {
  count(client: string): Counted | Promise<Counted>;
  takeBack(client: string): void | Promise<void>;
}

/** Under one name in one place, counts are shared. */
export type OpenWindows = (name: string) => SharedWindows;

/** In memory, lost at a restart. `windowMs` is for limits over another time than a minute. */
export function createMinuteWindows(clock: Clock, maxClients = MAX_CLIENTS, windowMs = WINDOW_MS): ReadableWindows {
  // Insertion order is the order in which windows began.
  const windows = boundedMap<string, Window>(maxClients);

  function currentWindow(client: string, now: number): Window {
    const known = windows.peek(client);
    if (known && known.endsAtMs > now) return known;
    const fresh = { count: 0, endsAtMs: now + windowMs };
    windows.set(client, fresh);
    return fresh;
  }

  return {
    count(client) {
      const now = clock.nowMs();
      const window = currentWindow(client, now);
      window.count += 1;
      return counted(window, now);
    },
    takeBack(client) {
      const window = windows.peek(client);
      if (window && window.endsAtMs > clock.nowMs() && window.count > 0) window.count -= 1;
    },
    read(client) {
      const now = clock.nowMs();
      const window = windows.peek(client);
      return window && window.endsAtMs > now ? counted(window, now) : { count: 0, resetSeconds: 0 };
    },
  };
}

function counted({ count, endsAtMs }: Window, now: number): Counted {
  return { count, resetSeconds: Math.ceil((endsAtMs - now) / 1000) };
}

/** In a set each: among its clients, many of one site would evict the site's window. */
export interface ClientWindows<W> {
  readonly clients: W;
  readonly sites: W;
}

/** Under the limit that a client reaches first. */
export interface Standing {
  readonly of: 'client' | 'site';
  readonly limit: number;
  /** Calls that still fit; below 0 when this one did not. */
  readonly left: number;
  readonly resetSeconds: number;
}

export function openClientWindows<W>(open: (name: string) => W, name: string): ClientWindows<W> {
  return { clients: open(name), sites: open(`${name} of sites`) };
}

/** Counts a call for a client, and for its site unless it is over its own limit: its neighbours lose nothing. */
export function countClient(perClient: number, windows: ClientWindows<MinuteWindows>, client: string): Standing {
  const own = standing('client', perClient, windows.clients.count(client));
  const site = own.left < 0 ? null : siteKey(client);
  return site === null ? own : nearer(own, standing('site', perClient * CLIENTS_PER_SITE, windows.sites.count(site)));
}

/** `countClient` for windows that may be on another machine. Rejects when it does not answer. */
export async function countSharedClient(
  perClient: number,
  windows: ClientWindows<SharedWindows>,
  client: string,
): Promise<Standing> {
  const own = standing('client', perClient, await windows.clients.count(client));
  const site = own.left < 0 ? null : siteKey(client);
  if (site === null) return own;
  return nearer(own, standing('site', perClient * CLIENTS_PER_SITE, await windows.sites.count(site)));
}

function standing(of: Standing['of'], limit: number, { count, resetSeconds }: Counted): Standing {
  return { of, limit, left: limit - count, resetSeconds };
}

/** Fewer calls left; of two equal limits the one that lasts longer. */
function nearer(own: Standing, site: Standing): Standing {
  const isAlike = site.left === own.left;
  return site.left < own.left || (isAlike && site.resetSeconds > own.resetSeconds) ? site : own;
}

export interface Take {
  readonly windows: ReadableWindows;
  readonly key: string;
  /** 0 is off. */
  readonly limit: number;
  /** Of an event beyond the limit. */
  refusal(resetSeconds: number): Error;
}

/** Of a client and of its site. `limit` is a client's. */
export function clientTakes(
  { clients, sites }: ClientWindows<ReadableWindows>,
  client: string,
  limit: number,
  refusal: Take['refusal'],
): readonly Take[] {
  const own: Take = { windows: clients, key: client, limit, refusal };
  const site = siteKey(client);
  return site === null ? [own] : [own, { windows: sites, key: site, limit: limit * CLIENTS_PER_SITE, refusal }];
}

/** Throws the first refusal of one more event. Makes no window: many checks would push out others. */
export function checkAll(takes: readonly Take[]): void {
  for (const { windows, key, limit, refusal } of takes) {
    const { count, resetSeconds } = windows.read(key);
    if (limit > 0 && count >= limit) throw refusal(resetSeconds);
  }
}

/** Counts one event under all limits; the result takes it back. Throws the first refusal; then nothing is counted. */
export function takeAll(takes: readonly Take[]): () => void {
  checkAll(takes);
  for (const { windows, key } of takes) windows.count(key);
  return () => {
    for (const { windows, key } of takes) windows.takeBack(key);
  };
}
