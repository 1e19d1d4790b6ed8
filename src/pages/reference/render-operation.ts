import { renderCode } from '../code-block.ts';
import type { ExampleTerms } from '../examples.ts';
import { type Html, html } from '../html.ts';
import { callExamples } from './call-examples.ts';
import { inlineCode } from './inline-code.ts';
import type { Answer, Operation, Param } from './read-document.ts';
import { searchedText } from './search-operations.ts';

/** What the rendering of an operation needs beside it. */
export interface RenderContext {
  readonly terms: ExampleTerms;
  /** The operation under `/v1/paid` that has the same answer as one under `/v1/lightning` or `/v1/mpp`; null for any other. */
  twinOf(operation: Operation): Operation | null;
}

/** Renders one operation: folded, a line with its path and price; opened, a form that calls it, code in three languages, and its answers. */
export function renderOperation(operation: Operation, context: RenderContext): Html {
  const { id, method, path, title, text, priceUsd } = operation;
  return html`<details class="op" id="${id}" data-find="${searchedText(operation)}">
<summary><span class="method ${method.toLowerCase()}">${method}</span> <code class="path">${path}</code> <span class="op-title">${inlineCode(title)}</span>${
    priceUsd !== null && html` <span class="op-price">${priceUsd} USD</span>`
  }</summary>
<div class="op-body">
${text && html`<p>${inlineCode(text)}</p>`}
${renderForm(operation)}
<h4>In code</h4>
${callExamples(operation, context.terms).map(({ language, note, code }) =>
  renderCode({ id: `${id}-${language.toLowerCase()}`, title: language, note, code, level: 5 }),
)}
<h4>Answers</h4>
${renderAnswers(operation, context)}
</div>
</details>
`;
}

/**
 * A form that works without scripts for a GET without path parameters: the browser opens its answer, of a priced one the 402. With scripts the answer
 * is shown below it.
 */
function renderForm({ id, method, path, priceUsd, params, body }: Operation): Html {
  const isPlain = method === 'GET' && !path.includes('{');
  const price = priceUsd !== null && html` data-price="${priceUsd}"`;
  return html`<form class="try" data-path="${path}" data-try="${method}"${price}${isPlain ? html` action="${path}" method="get"` : html` hidden`}>
${params.map((param) => renderParam(id, param))}
${
  body !== null &&
  html`<p class="wide"><label for="${id}-body">JSON body</label><textarea id="${id}-body" name="body" rows="4" spellcheck="false">${body}</textarea></p>`
}
<p class="go"><button type="submit">Try it</button></p>
<div class="outcome" hidden></div>
</form>`;
}

function renderParam(operation: string, { name, isRequired, text, example, choices, isInteger }: Param): Html {
  const id = `${operation}-${name}`;
  const shared = html`id="${id}" name="${name}" aria-describedby="${id}-text"${isRequired && html` required`}${
    // A browser without scripts would send it empty, which is a fault. The script enables it.
    example === '' && html` disabled data-enable`
  }`;
  const field =
    choices.length > 0
      ? html`<select ${shared}>${!isRequired && html`<option value=""></option>`}${choices.map(
          (choice) => html`<option${choice === example && html` selected`}>${choice}</option>`,
        )}</select>`
      : html`<input ${shared} value="${example}"${isInteger && html` inputmode="numeric"`} autocomplete="off" spellcheck="false">`;
  return html`<p><label for="${id}"><code>${name}</code>${isRequired && html` <span class="required">required</span>`}</label>${field}<small id="${id}-text">${inlineCode(text)}</small></p>
`;
}

function renderAnswers(operation: Operation, context: RenderContext): Html {
  const twin = context.twinOf(operation);
  const [good, others] = [
    operation.answers.filter(({ status }) => status.startsWith('2')),
    operation.answers.filter(({ status }) => !status.startsWith('2')),
  ];
  return html`${good.map((answer) =>
    twin
      ? html`<p><strong>${answer.status}</strong> The same answer as <a href="/docs#${twin.id}"><code>${twin.path}</code></a>.</p>`
      : renderGood(operation, answer),
  )}
${others.length > 0 && html`<dl class="statuses">${others.map(({ status, text }) => html`<div><dt>${status}</dt><dd>${inlineCode(text)}</dd></div>`)}</dl>`}`;
}

function renderGood({ id }: Operation, { status, text, fields, example }: Answer): Html {
  return html`<p><strong>${status}</strong> ${inlineCode(text)}</p>
${
  fields.length > 0 &&
  html`<div class="scroll" role="region" aria-label="Fields of the answer ${status}" tabindex="0"><table class="fields">
<thead><tr><th scope="col">Field</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
<tbody>${fields.map(
    (field) =>
      html`<tr><th scope="row"><code>${field.name}</code></th><td>${field.type}</td><td>${inlineCode(field.text)}</td></tr>
`,
  )}</tbody></table></div>`
}
${example !== null && renderCode({ id: `${id}-answer-${status}`, title: 'Example', note: 'an answer', code: example, level: 5 })}`;
}
