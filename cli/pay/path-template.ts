/** Whether a path is one that a template describes: `{name}` or `:name` stands for any one segment. */
export function fitsPath(template: string, path: string): boolean {
  const [wanted, given] = [segments(template), segments(path)];
  return wanted.length === given.length && wanted.every((part, at) => part === given[at] || isPlaceholder(part));
}

const isPlaceholder = (part: string): boolean => /^(?:\{[^{}]*\}|%7B[^{}]*%7D|:[A-Za-z]\w*)$/i.test(part);
const segments = (path: string): string[] => path.replace(/\/+$/, '').split('/');
