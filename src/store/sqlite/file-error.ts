import Database from 'better-sqlite3';

/** SQLite's codes for a file, a disk or a lock that fails for now. All others are bugs. */
const CODES = /^SQLITE_(FULL|IOERR|CANTOPEN|READONLY|BUSY|LOCKED|CORRUPT|NOTADB|PROTOCOL|PERM)/;

/** A database's file or log that cannot be written or read. The message names the path, for logs. */
export class DatabaseFileError extends Error {
  /** SQLite's code, which names the operation, or the system's, such as `EIO`. */
  readonly code: string;
  readonly path: string;
  /** What is wrong, without the path, for `/readyz`. */
  readonly reason: string;
  constructor(path: string, code: string, cause: Error) {
    const reason = cause.message.includes(code) ? cause.message : `${cause.message} (${code})`;
    super(`${path}: ${reason}`, { cause });
    this.name = new.target.name;
    this.code = code;
    this.path = path;
    this.reason = reason;
  }
}

/** The failure of a database's file as one that names its path. Null for any other error. */
export function asFileError(error: unknown, path: string): DatabaseFileError | null {
  if (error instanceof DatabaseFileError) return error;
  const isOfFile = error instanceof Database.SqliteError && CODES.test(error.code);
  return isOfFile ? new DatabaseFileError(path, error.code, error) : null;
}

/** Opens a database. Throws the failure of its file as one that names the path. */
export function openNamed<T>(path: string, open: (path: string) => T): T {
  try {
    return open(path);
  } catch (error) {
    throw asFileError(error, path) ?? error;
  }
}
