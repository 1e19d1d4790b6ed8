import { z } from 'zod';

/** What a subject's part of the environment becomes once each of its values is read. */
export type Read<E extends z.core.$ZodLooseShape> = z.output<z.ZodObject<E>>;

export const wholeNumber = (min = 0, max = Number.MAX_SAFE_INTEGER) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'a whole number')
    .transform(Number)
    .refine(
      (value) => value >= min && value <= max,
      max === Number.MAX_SAFE_INTEGER ? `a whole number from ${min}` : `a whole number from ${min} to ${max}`,
    );

export const whole = (fallback: number, min?: number, max?: number) => wholeNumber(min, max).default(fallback);

/** An amount of USDC in decimal digits, in base units. */
export const usdc = (fallback: string) =>
  z
    .string()
    .regex(/^\d{1,9}(\.\d{1,6})?$/, 'a decimal number of USDC')
    .default(fallback)
    .transform((text) => unitsOf(text, 6));

/** Plain decimal digits in whole units of 10^-`decimals`. The caller has checked their form. */
export function unitsOf(text: string, decimals: number): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(decimals, '0'));
}

export const onOff = (fallback: 'on' | 'off') => z.enum(['on', 'off'], 'on or off').default(fallback);

/** An http or https URL without a trailing slash, query or fragment: paths are appended to it. */
export const baseUrl = z
  .string()
  .refine((text) => URL.canParse(text) && /^https?:\/\/[^?#]+$/.test(text), 'an http or https URL')
  .transform((text) => text.replace(/\/+$/, ''));

/** The environment as it was given, before anything is parsed. */
export type Given = Readonly<Record<string, string | undefined>>;

export const privateKey = z.string().regex(/^0x[0-9a-fA-F]{64}$/, 'a 0x private key of 64 hex digits');

export const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/, 'a 0x address of 40 hex digits');

/** It is sent in a header unchanged. */
export const bearerToken = z.string().regex(/^[\x21-\x7e]+$/, 'a token without spaces');

export const httpUrl = z.url({ protocol: /^https?$/, error: 'an http or https URL' });

/** Values between commas, without the spaces around them. Empty ones are left out. */
export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);
