import { z } from 'zod';

/** A whole number within bounds. */
export const wholeNumber = (min = 0, max = Number.MAX_SAFE_INTEGER) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'a whole number')
    .transform(Number)
    .refine(
      (value) => value >= min && value <= max,
      max === Number.MAX_SAFE_INTEGER ? `a whole number from ${min}` : `a whole number from ${min} to ${max}`,
    );

/** A whole number within bounds, with a default. */
export const whole = (fallback: number, min?: number, max?: number) => wholeNumber(min, max).default(fallback);

/** An amount of USDC in decimal digits, with a default. The value is in base units. */
export const usdc = (fallback: string) =>
  z
    .string()
    .regex(/^\d{1,9}(\.\d{1,6})?$/, 'a decimal number of USDC')
    .default(fallback)
    .transform((text) => {
      const [whole = '', fraction = ''] = text.split('.');
      return BigInt(whole + fraction.padEnd(6, '0'));
    });

/** An http or https URL without a trailing slash; a query or a fragment is refused, because paths are appended. */
export const baseUrl = z
  .string()
  .refine((text) => URL.canParse(text) && /^https?:\/\/[^?#]+$/.test(text), 'an http or https URL')
  .transform((text) => text.replace(/\/+$/, ''));

/** An address of the chain. */
export const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/, 'a 0x address of 40 hex digits');

/** An http or https URL. */
export const httpUrl = z.url({ protocol: /^https?$/, error: 'an http or https URL' });

/** Values between commas. Spaces around a value, and empty values, are left out. */
export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);
