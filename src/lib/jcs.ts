/** No real request nests deeper, and recursion must end before the stack overflows. */
const MAX_DEPTH = 64;
/** More than a request body holds: an object that contains itself many times must end. */
const MAX_VALUES = 262_144;

interface Budget {
  left: number;
}

/** Canonical JSON (RFC 8785); null for what is not plain data. Nothing is dropped or invoked. Never throws. */
export function jcs(value: unknown): string | null {
  try {
    return textOf(value, 0, { left: MAX_VALUES });
  } catch {
    // Only a Proxy's trap can throw.
    return null;
  }
}

function textOf(value: unknown, depth: number, budget: Budget): string | null {
  budget.left -= 1;
  if (budget.left < 0) return null;
  switch (typeof value) {
    case 'string':
      return stringText(value);
    case 'number':
      return Number.isFinite(value) ? String(value) : null;
    case 'boolean':
      return String(value);
    case 'object':
      if (value === null) return 'null';
      if (depth === MAX_DEPTH) return null;
      return Array.isArray(value) ? arrayText(value, depth, budget) : objectText(value, depth, budget);
    default:
      return null;
  }
}

/** ECMAScript escapes as the RFC demands, but for a lone surrogate, which has no UTF-8. */
function stringText(value: string): string | null {
  return value.isWellFormed() ? JSON.stringify(value) : null;
}

function arrayText(value: readonly unknown[], depth: number, budget: Budget): string | null {
  if (Object.getPrototypeOf(value) !== Array.prototype) return null;
  // One own key per element, and `length`. A hole is found when it is read.
  if (value.length > budget.left || Reflect.ownKeys(value).length !== value.length + 1) return null;
  const texts: string[] = [];
  for (let index = 0; index < value.length; index++) {
    const text = propertyText(value, String(index), depth, budget);
    if (text === null) return null;
    texts.push(text);
  }
  return `[${texts.join(',')}]`;
}

function objectText(value: object, depth: number, budget: Budget): string | null {
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return null;
  const keys = Reflect.ownKeys(value);
  if (!keys.every((key) => typeof key === 'string')) return null;
  const texts: string[] = [];
  // By UTF-16 code units, as the RFC sorts.
  for (const key of keys.sort()) {
    const name = stringText(key);
    const text = propertyText(value, key, depth, budget);
    if (name === null || text === null) return null;
    texts.push(`${name}:${text}`);
  }
  return `{${texts.join(',')}}`;
}

/** Null unless it is an own, enumerable data property: an accessor is never invoked. */
function propertyText(owner: object, key: string, depth: number, budget: Budget): string | null {
  const property = Object.getOwnPropertyDescriptor(owner, key);
  if (!property?.enumerable || !Object.hasOwn(property, 'value')) return null;
  return textOf(property.value, depth + 1, budget);
}
