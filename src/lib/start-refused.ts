/** Why this service does not start: one line for its operator, who can mend it. It is no bug: no stack is printed. */
export class StartRefused extends Error {}

const LISTENING: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there: stop it, or set another PORT',
  EACCES: 'this user may not listen there: set a PORT of 1024 or above',
  EADDRNOTAVAIL: 'this machine has no such address: set another HOST',
  ENOTFOUND: 'this machine has no such address: set another HOST',
};

/** The error of a server that cannot listen where the operator wants it, as a refusal. Any other error stays as it is. */
export function listeningRefused(error: unknown, { host, port }: { host: string; port: number }): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const why = LISTENING[code];
  return why === undefined ? error : new StartRefused(`${host}:${port} (${code}): ${why}`, { cause: error });
}
