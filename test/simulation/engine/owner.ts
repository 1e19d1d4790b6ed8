import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Whose doing an event is: an instance of the service, the world, the clients. What an owner starts is its own, through every promise, because
 * its code runs inside this context. So an instance that is killed takes everything that it had begun with it.
 */
export interface Owner {
  readonly name: string;
  /** Events of one asleep wait for its waking; those of the dead never run. */
  state: 'running' | 'asleep' | 'dead';
}

const context = new AsyncLocalStorage<Owner>();

/** The world itself: blocks, hosts, the adversary. */
export const WORLD: Owner = { name: 'world', state: 'running' };
/** Everybody who calls the service. */
export const CLIENTS: Owner = { name: 'clients', state: 'running' };

export const currentOwner = (): Owner => context.getStore() ?? WORLD;

/** Each owner's context, made once: to make one for each event costs as much as many events do. */
const contexts = new WeakMap<Owner, ReturnType<typeof AsyncLocalStorage.snapshot>>();

function contextOf(owner: Owner): ReturnType<typeof AsyncLocalStorage.snapshot> {
  const known = contexts.get(owner) ?? context.run(owner, () => AsyncLocalStorage.snapshot());
  contexts.set(owner, known);
  return known;
}

/** Runs something as this owner's doing. */
export const runAs = <T>(owner: Owner, work: () => T): T => contextOf(owner)(work);
