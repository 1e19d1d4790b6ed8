import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { PromiseName } from '../promises/promise.ts';

/** Which seed found a planted fault, the first of all from 1 on, and by which promise. */
export interface Found {
  readonly plant: string;
  readonly promise: PromiseName;
  readonly seed: number;
}

export const FOUND_FILE = fileURLToPath(new URL('./found.json', import.meta.url));

export const readFound = (): Found[] =>
  existsSync(FOUND_FILE) ? (JSON.parse(readFileSync(FOUND_FILE, 'utf8')) as Found[]) : [];
