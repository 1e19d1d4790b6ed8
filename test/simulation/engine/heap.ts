/** What waits, the smallest first: by `due`, and among equals in the order in which they came. */
export interface Queued {
  readonly due: number;
  readonly order: number;
}

/** A binary heap. */
export function createHeap<T extends Queued>() {
  const items: T[] = [];
  const before = (a: T, b: T): boolean => a.due < b.due || (a.due === b.due && a.order < b.order);

  function up(from: number): void {
    const item = items[from] as T;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const other = items[parent] as T;
      if (!before(item, other)) break;
      items[at] = other;
      at = parent;
    }
    items[at] = item;
  }

  function down(): void {
    const item = items[0] as T;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && before(items[child + 1] as T, items[child] as T)) child += 1;
      const other = items[child] as T;
      if (!before(other, item)) break;
      items[at] = other;
      at = child;
    }
    items[at] = item;
  }

  return {
    size: (): number => items.length,
    peek: (): T | undefined => items[0],
    push(item: T): void {
      items.push(item);
      up(items.length - 1);
    },
    pop(): T | undefined {
      const first = items[0];
      const last = items.pop();
      if (items.length > 0 && last !== undefined) {
        items[0] = last;
        down();
      }
      return first;
    },
    clear(): void {
      items.length = 0;
    },
  };
}

export type Heap<T extends Queued> = ReturnType<typeof createHeap<T>>;
