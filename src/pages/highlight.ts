import { type Html, html } from './html.ts';

/** Matches quoted text and keywords of the languages that pages show. Everything else stays plain. */
const TOKENS =
  /(?<text>'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|(?<word>\b(?:import|from|const|await|new|as|with|curl|grep|cut|tr|base64)\b)/g;

/** Marks strings and keywords in code. Screen readers read the code unchanged. */
export function highlight(code: string): Html {
  const parts: Html[] = [];
  let end = 0;
  for (const { index, 0: token, groups } of code.matchAll(TOKENS)) {
    parts.push(html`${code.slice(end, index)}<span class="${groups?.text ? 'text' : 'word'}">${token}</span>`);
    end = index + token.length;
  }
  return html`${parts}${code.slice(end)}`;
}
