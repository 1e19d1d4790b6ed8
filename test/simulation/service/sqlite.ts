import RealDatabase from 'better-sqlite3';
import { currentOwner, type Owner } from '../engine/owner.ts';

/** Connections by who opened them, so that they can be closed when that one is killed. */
const opened = new Map<Owner, Set<RealDatabase.Database>>();

/** What the service gets for `better-sqlite3`: the real thing, remembered. */
function Database(file?: string, options?: RealDatabase.Options): RealDatabase.Database {
  const db = new RealDatabase(file, options);
  const owner = currentOwner();
  const others = opened.get(owner) ?? new Set();
  opened.set(owner, others.add(db));
  return db;
}

export default Object.assign(Database, { SqliteError: RealDatabase.SqliteError });

/** The open connections of an owner to files of this name. */
export function connectionsOf(owner: Owner, name: string): RealDatabase.Database[] {
  return [...(opened.get(owner) ?? [])].filter((db) => db.open && db.name.endsWith(name));
}

/** An open connection of the service to this file, in between two transactions; null where there is none. */
export function idleConnectionTo(file: string): RealDatabase.Database | null {
  for (const connections of opened.values())
    for (const db of connections) if (db.name === file && db.open && !db.inTransaction) return db;
  return null;
}

/** What the system does to the files of a process that has died: locks are gone, and nothing half-done remains. */
export function closeAll(owner: Owner): void {
  for (const db of opened.get(owner) ?? []) if (db.open) db.close();
  opened.delete(owner);
}
