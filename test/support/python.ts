import { spawnSync } from 'node:child_process';

/** The Python in PATH may be another one than Debian's, which alone has Debian's packages. */
const CANDIDATES = ['python3', '/usr/bin/python3'];

/** A Python that has the modules; null where there is none. */
export function pythonWith(...modules: string[]): string | null {
  const program = modules.map((name) => `import ${name}`).join('\n');
  return CANDIDATES.find((command) => spawnSync(command, ['-c', program]).status === 0) ?? null;
}
