/** Longer than any SPDX expression in use, and shorter than any licence's text, which some packages give instead. */
const MAX_LICENCE = 100;

/** A licence as one short line. Null for whole texts, placeholders and blanks. */
export function shortLicence(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const text = value.trim();
  const says = text.length <= MAX_LICENCE && /[A-Za-z]/.test(text) && !/[\r\n]/.test(text);
  return says && !/^(UNKNOWN|NONE)$/i.test(text) ? text : null;
}

/**
 * npm's `license` in all its forms: an SPDX expression, an old object `{ type }`, or an old array of either.
 * Several licences are alternatives, as npm's documentation of the array says, and become one SPDX expression.
 */
export function npmLicence(...values: readonly unknown[]): string | null {
  for (const value of values) {
    const names = (Array.isArray(value) ? value : [value]).map(nameOf).filter((name) => name !== null);
    if (names.length === 1) return names[0] ?? null;
    if (names.length > 1) return `(${names.join(' OR ')})`;
  }
  return null;
}

function nameOf(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return shortLicence(value);
  return shortLicence('type' in value ? value.type : 'name' in value ? value.name : null);
}

/** PEP 639's expression, else the old free text when it is short, else what the classifiers name. */
export function pythonLicence(info: {
  license_expression?: string | null | undefined;
  license?: string | null | undefined;
  classifiers?: readonly string[] | null | undefined;
}): string | null {
  const classified = (info.classifiers ?? []).flatMap((entry) => {
    const [family, ...parts] = entry.split(' :: ');
    // The family alone (`License :: OSI Approved`) names no licence.
    return family === 'License' && parts.at(-1) !== 'OSI Approved' ? parts.slice(-1) : [];
  });
  return shortLicence(info.license_expression) ?? shortLicence(info.license) ?? (classified.join(', ') || null);
}
