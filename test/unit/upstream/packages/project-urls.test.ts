import { expect, test } from 'vitest';
import { projectUrls, repositoryPage } from '../../../../src/upstream/packages/project.ts';

test('web pages only, each once, in their order, with plain labels', () => {
  expect(
    projectUrls([
      ['Home\u202epage <b>', ' https://a.example/x '],
      ['mail', 'mailto:someone@a.example'],
      ['script', 'javascript:alert(1)'],
      ['none', undefined],
      ['again', 'https://a.example/x'],
      ['login', 'https://user:secret@b.example/'],
      ['long', `https://c.example/${'x'.repeat(500)}`],
    ]),
  ).toEqual([
    { label: 'Homepage', url: 'https://a.example/x' },
    { label: 'login', url: 'https://b.example/' },
  ]);
});

test('at most twenty, with labels of at most fifty characters', () => {
  const many = Array.from({ length: 30 }, (_, at) => ['l'.repeat(80), `https://a.example/${at}`] as const);
  const found = projectUrls(many);
  expect(found).toHaveLength(20);
  expect(found[0]?.label.length).toBe(50);
});

test.each([
  ['git+https://github.com/a/b.git', 'https://github.com/a/b'],
  ['git://github.com/a/b.git', 'https://github.com/a/b'],
  ['git+ssh://git@github.com/a/b.git', 'https://github.com/a/b'],
  ['github:a/b', 'https://github.com/a/b'],
  ['gitlab:a/b', 'https://gitlab.com/a/b'],
  ['bitbucket:a/b', 'https://bitbucket.org/a/b'],
  ['a/b', 'https://github.com/a/b'],
  ['code.example/legacy/x', null],
  ['', null],
  [undefined, null],
  [7, null],
])('the repository %o is the page %o', (repository, page) => {
  expect(repositoryPage(repository)).toBe(page);
});
