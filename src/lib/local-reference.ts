import { own } from './own-property.ts';

/** The longest chain of references that is followed, and the most steps of one. */
const MAX_HOPS = 5;
const MAX_STEPS = 10;

/** Resolves a reference within a JSON document. An external or circular one resolves to nothing. Nothing is fetched; never throws. */
export function followReference(document: unknown, value: unknown): unknown {
  let target = value;
  for (let hops = 0; hops <= MAX_HOPS; hops += 1) {
    const reference = own(target, '$ref');
    if (typeof reference !== 'string') return target;
    if (!reference.startsWith('#/')) return undefined;
    const steps = reference.slice(2).split('/').slice(0, MAX_STEPS);
    target = steps.reduce<unknown>((at, step) => own(at, step.replaceAll('~1', '/').replaceAll('~0', '~')), document);
  }
  return undefined;
}
