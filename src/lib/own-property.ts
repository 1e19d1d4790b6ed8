/** Stands for a property that cannot be read without running the value's own code; equal to nothing that JSON can say. */
export const UNREADABLE: unique symbol = Symbol('unreadable');

/**
 * A value's own data property; undefined where there is none, never one of a prototype, and no accessor is invoked.
 * Untrusted objects are read through this, so that `constructor` or `__proto__` is data like any other. Never throws.
 */
export function own(value: unknown, key: PropertyKey): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    const property = Object.getOwnPropertyDescriptor(value, key);
    return property && (Object.hasOwn(property, 'value') ? property.value : UNREADABLE);
  } catch {
    return UNREADABLE;
  }
}

/** All own keys of an object, those of symbols and hidden ones too; null for what is no object or will not tell. Never throws. */
export function ownKeys(value: unknown): readonly PropertyKey[] | null {
  if (typeof value !== 'object' || value === null) return null;
  try {
    return Reflect.ownKeys(value);
  } catch {
    return null;
  }
}
