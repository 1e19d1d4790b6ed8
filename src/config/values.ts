import { z } from 'zod';

// How the values of several keys are read. Each error says the whole form, as documents do.

export const text = (pattern: RegExp, form: string) => z.string().regex(pattern, form);

export const whole = (min = 0, max = Number.MAX_SAFE_INTEGER) => {
  const form = `a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? '' : ` to ${max}`}`;
  const digits = text(/^\d{1,15}$/, form).transform(Number);
  return digits.refine((value) => value >= min && value <= max, form);
};

/** A whole number, multiplied. */
export const scaled = (factor: number, min: number, max?: number) =>
  whole(min, max).transform((value) => value * factor);

/** A decimal number with up to `digits` digits after its point, in whole units of 10^-`decimals`. */
export const decimal = (form: string, digits: number, decimals = digits) =>
  text(new RegExp(`^\\d{1,9}(\\.\\d{1,${digits}})?$`), form).transform((given) => {
    const [whole = '', fraction = ''] = given.split('.');
    return BigInt(whole + fraction.padEnd(decimals, '0'));
  });

/** An amount of USDC in base units. */
export const usdc = decimal('a decimal number of USDC', 6);

export const oneOf = <const T extends string>(...values: readonly T[]) =>
  z.enum(values, values.length === 2 ? values.join(' or ') : `one of ${values.join(', ')}`);

/** Whether it is that word of two. */
export const is = (yes: string, no: string) => oneOf(yes, no).transform((value) => value === yes);
export const onOff = is('on', 'off');

export const lower = (given: string) => given.toLowerCase() as `0x${string}`;
const hex = (digits: number, form: string) =>
  text(new RegExp(`^0x[0-9a-fA-F]{${digits}}$`), form).transform((given) => given as `0x${string}`);
export const privateKey = hex(64, 'a 0x private key of 64 hex digits');
export const blockHash = hex(64, 'a block hash of 64 hex digits').transform(lower);
/** In the letter case that was given. */
export const address = hex(40, 'a 0x address of 40 hex digits');

/** It is sent in a header unchanged. */
export const token = text(/^[\x21-\x7e]+$/, 'a token without spaces');

export const url = (protocol: RegExp, error: string) => z.url({ protocol, error });
export const httpUrl = url(/^https?$/, 'an http or https URL');

/** An http or https URL without a trailing slash, query or fragment: paths are appended to it. */
export const baseUrl = z
  .string()
  .refine((given) => URL.canParse(given) && /^https?:\/\/[^?#]+$/.test(given), 'an http or https URL without a query')
  .transform((given) => given.replace(/\/+$/, ''));

/** Values between commas, without the spaces around them. Empty ones are left out. */
export const list = z.string().transform((given) => {
  const parts = given.split(',').map((part) => part.trim());
  return parts.filter((part) => part !== '');
});
export const listOf = <T>(schema: z.ZodType<T, string>) => list.pipe(z.array(schema));

/** A list whose entries are made of the groups of `pattern`; null is no entry. */
export const entries = <T>(pattern: RegExp, form: string, read: (groups: readonly string[]) => T | null) =>
  list.transform((given, context): T[] =>
    given.flatMap((entry) => {
      const [, ...groups] = pattern.exec(entry) ?? [];
      const value = groups.length === 0 ? null : read(groups);
      if (value === null) context.addIssue({ code: 'custom', message: `a comma-separated list of ${form}` });
      return value === null ? [] : [value];
    }),
  );
