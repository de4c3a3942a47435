/** An entry of a list. */
export class ListNode<T> {
  /** @internal */
  before: ListNode<T> | undefined;
  /** @internal */
  after: ListNode<T> | undefined;

  /** @internal */
  constructor(
    public value: T,
    /** The list of this entry, until the entry leaves it. */
    public list: LinkedList<T> | undefined,
  ) {}

  /** Removes this entry from its list. Idempotent. */
  leave(): void {
    const { list } = this;
    this.list = undefined;
    list?.remove(this);
  }
}

/**
 * A list with appending at its end and removal anywhere, both in constant time.
 *
 * Used instead of a `Set` where members come and go all the time: V8 links the tables that a set or a map has outgrown,
 * and so retains members that were removed long ago until the next full garbage collection.
 */
export class LinkedList<T> {
  private head: ListNode<T> | undefined;
  private tail: ListNode<T> | undefined;

  get first(): T | undefined {
    return this.head?.value;
  }

  /** @internal */
  get firstNode(): ListNode<T> | undefined {
    return this.head;
  }

  /** @internal */
  get lastNode(): ListNode<T> | undefined {
    return this.tail;
  }

  get isEmpty(): boolean {
    return this.head === undefined;
  }

  add(value: T): ListNode<T> {
    const member = new ListNode(value, this);
    this.append(member);
    return member;
  }

  /** @internal */
  append(member: ListNode<T>): void {
    member.before = this.tail;
    if (this.tail) this.tail.after = member;
    else this.head = member;
    this.tail = member;
  }

  /** A snapshot of all values, in their order. */
  get values(): readonly T[] {
    const values: T[] = [];
    for (let member = this.head; member; member = member.after) values.push(member.value);
    return values;
  }

  /** @internal */
  remove(member: ListNode<T>): void {
    const { before, after } = member;
    // Otherwise, a remaining reference to the member would keep its neighbours from being freed.
    member.before = member.after = undefined;
    if (before) before.after = after;
    else this.head = after;
    if (after) after.before = before;
    else this.tail = before;
  }
}
