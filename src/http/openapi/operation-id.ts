import type { Mount } from '../../catalogue/paths.ts';
import { pascal } from './openapi-shared.ts';

/** `/fees/estimate`, paid, is `paidFeesEstimate`: stable names for generated clients and for links into the reference. */
export function operationIdOf(path: string, mount: Mount): string {
  return mount + pascal(path);
}
