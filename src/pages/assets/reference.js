import { describePayment, summarisePayment } from './reference-payment.js';

/** Draws the reference from the service's OpenAPI document. It adds prices, and shows an answer's decoded payment headers above the answer. */

/** @typedef {Record<string, unknown>} Props */
/** @typedef {(type: unknown, props: Props | null, ...children: unknown[]) => unknown} CreateElement */
/** @typedef {{ get(key: string): unknown, getIn(path: unknown[]): unknown }} Operation */
/** @typedef {{ React: { createElement: CreateElement, Fragment: unknown }, specSelectors: { specJson(): Operation } }} System */
/** @typedef {{ paths: Record<string, Record<string, unknown> | undefined> }} Spec */
/** @typedef {(spec: Spec, path: string[], options: unknown) => Promise<unknown>} Resolve */
/** @typedef {{ toJS(): Record<string, string> }} Headers */

const DOCUMENT = '/openapi.json';
const { SwaggerUIBundle } = /** @type {{ SwaggerUIBundle: (options: object) => void }} */ (
  /** @type {unknown} */ (window)
);
const place = document.querySelector('#reference');
const spoken = document.querySelector('#reference-answer');

/**
 * Makes the library resolve one operation against the components only.
 * By itself it resolves the whole document for each opened operation, which blocks the page for more than a second.
 * @param {{ fn: { resolveSubtree: Resolve } }} system
 */
function resolveAlone({ fn }) {
  const { resolveSubtree } = fn;
  fn.resolveSubtree = (spec, path, options) => {
    const [part, url, method] = path;
    const operation = part === 'paths' && url && method && spec.paths[url]?.[method];
    return resolveSubtree({ ...spec, paths: operation ? { [url]: { [method]: operation } } : {} }, path, options);
  };
}

/**
 * The library's components, changed for this page.
 * @param {System} system
 */
function ourParts({ React, specSelectors }) {
  const { createElement: element, Fragment } = React;
  /** @param {unknown[]} parts */
  const beside = (...parts) => element(Fragment, null, ...parts);
  return {
    afterLoad: resolveAlone,
    wrapComponents: {
      // The library puts a link inside the button that opens an operation. Keyboard and screen-reader users cannot tell the two controls apart, so the
      // link becomes text.
      DeepLink: (/** @type {unknown} */ Original) => (/** @type {{ path: string, text: unknown }} */ props) =>
        props.path.includes('/') ? element('span', null, props.text) : element(Original, props),
      // Without this a schema without a title would have a button without a name.
      JSONSchema202012Accordion:
        (/** @type {unknown} */ Original) =>
        (/** @type {Props} */ { children, ...props }) =>
          element(Original, props, children, element('span', { className: 'unseen' }, ' fields')),
      TextArea: (/** @type {unknown} */ Original) => (/** @type {Props} */ props) =>
        element(Original, { 'aria-label': 'Request body', ...props }),
      // The library names a field by its placeholder, and gives a list of choices no name.
      JsonSchemaForm: (/** @type {unknown} */ Original) => (/** @type {Props} */ props) =>
        element('label', null, element('span', { className: 'unseen' }, props.description), element(Original, props)),
      OperationSummaryPath:
        (/** @type {unknown} */ Original) => (/** @type {{ operationProps: Operation }} */ props) => {
          const operation = ['path', 'method'].map((key) => props.operationProps.get(key));
          const usd = specSelectors.specJson().getIn(['paths', ...operation, 'x-payment-info', 'price', 'amount']);
          const price = usd !== undefined && element('span', { className: 'operation-price' }, `${usd} USD`);
          return beside(element(Original, props), price);
        },
      liveResponse:
        (/** @type {unknown} */ Original) =>
        (/** @type {{ response: { get(key: string): Headers | undefined } }} */ props) => {
          const headers = props.response.get('headers')?.toJS() ?? {};
          return beside(payment(element, headers), element(Original, props));
        },
    },
  };
}

/**
 * The decoded payment headers of an answer; nothing when it has none.
 * @param {CreateElement} element
 * @param {Record<string, string>} headers
 */
function payment(element, headers) {
  const description = describePayment(headers);
  if (description === null) return null;
  const { header, groups, json } = description;
  const title = `${header}, decoded`;
  const facts = groups.flatMap((group) => [
    element('h5', null, group.title),
    element(
      'dl',
      null,
      ...group.facts.map(([label, text]) =>
        element('div', null, element('dt', null, label), element('dd', null, text)),
      ),
    ),
  ]);
  const content =
    json === null
      ? element('p', null, 'It cannot be: it is not JSON in base64.')
      : element('pre', { tabIndex: 0, 'aria-label': `${header} as JSON` }, json);
  const parts = [element('h4', null, title), ...facts, content];
  return element('section', { className: 'payment', 'aria-label': title }, ...parts);
}

/**
 * Announces the answer to screen readers in one sentence, because it appears far below the button.
 * @param {{ url: string, status: number, headers: Record<string, string> }} response
 */
function announce(response) {
  const summary = summarisePayment(describePayment(response.headers));
  if (spoken) spoken.textContent = `${new URL(response.url).pathname} answered ${response.status}. ${summary}`.trim();
  return response;
}

async function draw() {
  const answer = await fetch(DOCUMENT);
  if (!answer.ok) throw new Error(`${DOCUMENT} answered ${answer.status}`);
  const spec = await answer.json();
  // Requests go to the address at which the page was opened, because its content security policy allows no other.
  delete spec.servers;
  // The library would ask for passwords. Payments are no accounts, and the page makes none.
  delete spec.components.securitySchemes;
  for (const item of Object.values(spec.paths)) for (const operation of Object.values(item)) delete operation.security;
  SwaggerUIBundle({
    spec,
    domNode: place,
    plugins: [ourParts],
    responseInterceptor: announce,
    deepLinking: true,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    docExpansion: 'list',
    defaultModelsExpandDepth: -1,
    syntaxHighlight: false,
    validatorUrl: null,
  });
}

draw().catch((error) => {
  if (place) place.textContent = `The reference cannot be drawn: ${error.message}.`;
});
