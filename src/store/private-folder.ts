import { chmodSync, mkdirSync, readdirSync, type Stats, statSync } from 'node:fs';
import { join, parse, resolve } from 'node:path';

/** The group's and everyone else's rights. */
const OF_OTHERS = 0o077;
const OF_EVERYONE = 0o007;
/** A folder in which every user may make files, such as /tmp. */
const STICKY = 0o1000;
/**
 * What the service and its tools make in a data folder: databases with what belongs to them, locks, and the id of the
 * last start.
 */
const DATA_FILE = /\.(db|lock)(-\w+)?$|^boot-id$/;

/** Where what was found is said. */
interface FolderLog {
  info(detail: { readonly path: string }, message: string): void;
  warn(detail: { readonly path: string }, message: string): void;
}

/**
 * Makes a data folder, or closes it and its files to other users of the machine: the ledger holds answers, signatures
 * of open payments and the key of L402 and MPP. Call it before a file of it is opened, in a process whose umask makes
 * new files private. The log is told of a folder that was open until now, and of one that belongs to another user.
 * 1. What is ours is closed by its mode, a WAL that exists already too.
 * 2. A folder of another owner is accepted when nobody but its owner and our group may enter it: it is a mounted
 *    volume.
 * 3. Anything else that others may read or write is refused: throws, with the command that closes it.
 */
export function closeFolder(folder: string, log: FolderLog): void {
  // Systems without users of this kind have no modes.
  if (process.getuid === undefined) return;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stats = statSync(folder);
  if (isOwnedByUs(stats)) closeOurFolder(folder, stats, log);
  else acceptFolder(folder, stats, log);
  for (const name of readdirSync(folder)) if (DATA_FILE.test(name)) closeFile(join(folder, name));
}

function closeOurFolder(folder: string, stats: Stats, log: FolderLog): void {
  if ((stats.mode & OF_OTHERS) === 0) return;
  const path = resolve(folder);
  if ((stats.mode & STICKY) !== 0 || path === parse(path).root)
    throw new Error(
      `${path} holds files of other programs, so it is not closed to them: name a folder of its own in DATA_DIR`,
    );
  makePrivate(path, stats);
  log.warn({ path }, 'other users of this machine could enter the data folder; it is closed to them now');
}

function acceptFolder(folder: string, { mode, uid, gid }: Stats, log: FolderLog): void {
  const path = resolve(folder);
  const isOurGroup = gid === process.getgid?.() || process.getgroups?.().includes(gid);
  const open = mode & (isOurGroup ? OF_EVERYONE : OF_OTHERS);
  if (open !== 0) throw new Error(refusal(path, uid, isOurGroup ? 'o-rwx' : 'go-rwx'));
  log.info({ path }, `the data folder belongs to another user (${uid}) and is closed to everyone else`);
}

/** A file that ended meanwhile, such as a WAL, needs nothing. */
function closeFile(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats?.isFile() || (stats.mode & OF_OTHERS) === 0) return;
  if (!isOwnedByUs(stats)) throw new Error(refusal(path, stats.uid, 'go-rwx'));
  makePrivate(path, stats);
}

const isOwnedByUs = ({ uid }: Stats): boolean => uid === process.geteuid?.();

/** Takes the rights of others, and throws where the file system keeps none. */
function makePrivate(path: string, { mode, uid }: Stats): void {
  chmodSync(path, mode & 0o7777 & ~OF_OTHERS);
  if ((statSync(path).mode & OF_OTHERS) !== 0)
    throw new Error(
      `${refusal(path, uid, 'go-rwx')}. Its file system keeps no modes: mount it with umask=077, or use another`,
    );
}

function refusal(path: string, uid: number, change: string): string {
  const quoted = `'${path.replaceAll("'", "'\\''")}'`;
  const found = `other users of this machine may read or write ${path}, which belongs to user ${uid}`;
  return `${found}. Close it: sudo chmod ${change} ${quoted}`;
}
