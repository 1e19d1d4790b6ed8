/** Marks a property that cannot be read without running the value's own code. It is equal to no JSON value. */
export const UNREADABLE: unique symbol = Symbol('unreadable');

/**
 * A value's own data property; undefined when there is none. It never reads a prototype and never runs an accessor.
 * Use it to read untrusted objects, so that `constructor` and `__proto__` are ordinary data. Never throws.
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

/** All own keys of an object, symbols and non-enumerable ones included. Null for a value that is no object and for a proxy that throws. Never throws. */
export function ownKeys(value: unknown): readonly PropertyKey[] | null {
  if (typeof value !== 'object' || value === null) return null;
  try {
    return Reflect.ownKeys(value);
  } catch {
    return null;
  }
}
