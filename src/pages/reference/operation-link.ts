import type { Mount } from '../../catalogue/paths.ts';
import { operationIdOf } from '../../http/openapi/operation-id.ts';

/** The address of an operation in the reference, opened and filled in with its example. `path` is the one below the prefix: `/fees/estimate`. */
export function referenceLink(path: string, mount: Mount): string {
  return `/docs#${operationIdOf(path, mount)}`;
}
