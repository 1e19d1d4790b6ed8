import { type Html, html } from './html.ts';

/** Text in quotes, then words of the languages that we show; whatever else there is stays plain. */
const TOKENS =
  /(?<text>'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|(?<word>\b(?:import|from|const|await|new|as|with|curl|grep|cut|tr|base64)\b)/g;

/** Code with its text and its words marked for the eye; a reader's software hears the code as it is. */
export function highlight(code: string): Html {
  const parts: Html[] = [];
  let end = 0;
  for (const { index, 0: token, groups } of code.matchAll(TOKENS)) {
    parts.push(html`${code.slice(end, index)}<span class="${groups?.text ? 'text' : 'word'}">${token}</span>`);
    end = index + token.length;
  }
  return html`${parts}${code.slice(end)}`;
}
