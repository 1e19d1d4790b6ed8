import validateNpmName from 'validate-npm-package-name';

/** npm's own limit. Only Maven and Go allow longer names, and none is in use. */
const MAX_NAME = 214;

/** Checks the form. `normalise` turns the spellings of a name into the registry's own. */
export function plainName(form: RegExp, normalise = (name: string) => name) {
  return (text: string): string | null => (text.length <= MAX_NAME && form.test(text) ? normalise(text) : null);
}

/** Follows npm's rules for existing names: old packages may have upper-case letters and signs that new ones may not. */
export function normaliseNpmName(text: string): string | null {
  return text.length <= MAX_NAME && validateNpmName(text).validForOldPackages ? text : null;
}

/** PEP 508's form in PEP 503's spelling: lower case, each run of dashes, dots and underscores one dash. */
export const normalisePypiName = plainName(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/, (name) =>
  name.toLowerCase().replace(/[-_.]+/g, '-'),
);

/** OSV's names for the language itself, beside module paths. */
const GO_LANGUAGE = /^(stdlib|toolchain)$/;
/** A module path begins with a host name, so its first element has a dot (https://go.dev/ref/mod#module-path). */
const GO_MODULE = /^(?=[^/]*\.)[A-Za-z0-9][\w.~-]*(\/[\w.~-]+)*$/;

export function normaliseGoModule(text: string): string | null {
  if (GO_LANGUAGE.test(text)) return text;
  const dots = text.split('/').some((element) => /^\.+$/.test(element));
  return text.length <= MAX_NAME && GO_MODULE.test(text) && !dots ? text : null;
}
