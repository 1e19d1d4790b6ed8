import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';

// Vitest setup: no test reaches beyond this machine. A test without its fake fails here with the address, so that its result never depends on the
// network. LIVE=1 (the opt-in live suite) disables this.

const MARK = Symbol.for('percall.loopback-only');
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|::ffff:127(\.\d{1,3}){3}|0\.0\.0\.0|::)$/i;

type AnyFunction = (this: unknown, ...args: unknown[]) => unknown;

function refuse(what: string, host: unknown): never {
  throw new Error(`a test tried to ${what} past loopback: ${String(host)} (LIVE=1 allows it)`);
}

function requireLoopback(what: string, host: unknown): void {
  // Without a host Node uses its default, localhost.
  if (host !== undefined && host !== null && !LOOPBACK.test(String(host))) refuse(what, host);
}

/** The host among the arguments of `connect`, which has many forms. Undefined for a path (a Unix socket or a pipe). */
function hostOf(args: unknown[]): unknown {
  const first = Array.isArray(args[0]) ? args[0][0] : args[0];
  if (typeof first === 'object' && first !== null)
    return 'path' in first && first.path ? undefined : (first as { host?: unknown }).host;
  return typeof first === 'number' || /^\d+$/.test(String(first))
    ? typeof args[1] === 'string'
      ? args[1]
      : undefined
    : undefined;
}

function guard(owner: object, name: string, check: (args: unknown[], self: unknown) => void): void {
  const holder = owner as Record<string, AnyFunction>;
  const original = holder[name];
  if (typeof original !== 'function') return;
  holder[name] = function guarded(this: unknown, ...args: unknown[]) {
    check(args, this);
    return original.apply(this, args);
  };
}

/** True for a resolver to which a test gave a name server of its own. */
function asksLoopback(resolver: unknown): boolean {
  if (!(resolver instanceof dns.Resolver) && !(resolver instanceof dns.promises.Resolver)) return false;
  return resolver.getServers().every((server) => server.startsWith('127.0.0.1:'));
}

function install(): void {
  guard(net.Socket.prototype, 'connect', (args) => requireLoopback('connect', hostOf(args)));
  for (const owner of [dns, dns.promises]) {
    guard(owner, 'lookup', (args) => requireLoopback('look up', args[0]));
  }
  // Resolvers ask a name server over the network, whatever the name.
  const queries = Object.keys(dns).filter((name) => name.startsWith('resolve') || name === 'reverse');
  for (const owner of [dns, dns.promises, dns.Resolver.prototype, dns.promises.Resolver.prototype]) {
    for (const name of queries) {
      guard(owner, name, (args, self) => {
        if (!asksLoopback(self)) refuse('resolve', args[0]);
      });
    }
  }
  syncBuiltinESMExports();
}

const flags = globalThis as { [MARK]?: boolean };
if (process.env.LIVE !== '1' && !flags[MARK]) {
  flags[MARK] = true;
  install();
}
