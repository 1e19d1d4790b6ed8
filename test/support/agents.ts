import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { parse } from 'yaml';
import { readText } from './documents.ts';

/** What a schema of test/fixtures/agents says against a value; null: it fits. */
export function faultBy(schema: 'server' | 'linkset' | 'registration' | 'skill', value: unknown): string | null {
  const text = readText(`test/fixtures/agents/${schema}.schema.json`);
  const { valid, errorMessage } = new AjvJsonSchemaValidator().getValidator(JSON.parse(text))(value);
  return valid ? null : String(errorMessage);
}

/** A skill's frontmatter as YAML, and the text below it. */
export function readSkill(text: string): { readonly front: Record<string, unknown>; readonly body: string } {
  const [, front = '', body = ''] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(text) ?? [];
  return { front: parse(front), body };
}
