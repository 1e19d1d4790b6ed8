import type { Mount } from '../../catalogue/paths.ts';

/** `/fees/estimate`, paid, is `paidFeesEstimate`: stable names for generated clients and for links into the reference. */
export function operationIdOf(path: string, mount: Mount): string {
  const words = path.split(/[^a-zA-Z0-9]+/).filter((word) => word !== '');
  return mount + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
