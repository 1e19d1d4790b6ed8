import { readFileSync } from 'node:fs';

/** Ids of a process's children, as Linux lists them; throws when the process is gone. */
export function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}
