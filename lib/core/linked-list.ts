/** One place in a list. */
export class Member<T> {
  /** @internal */
  before: Member<T> | undefined;
  /** @internal */
  after: Member<T> | undefined;

  /** @internal */
  constructor(
    public value: T,
    /** Where this place is, until it is given up. */
    public list: LinkedList<T> | undefined,
  ) {}

  /** Whether nobody is ahead in the list. */
  get isFirst(): boolean {
    return this.list !== undefined && this.before === undefined;
  }

  /** Gives the place up. Idempotent. */
  leave(): void {
    const { list } = this;
    this.list = undefined;
    list?.remove(this);
  }
}

/**
 * A list that is joined at its end and left from anywhere, at the same cost whatever its length.
 *
 * In place of a `Set`, where members come and go all the time: V8 links the tables that a set or a map has outgrown, and
 * so keeps members that were removed long ago until the next full garbage collection.
 */
export class LinkedList<T> {
  private head: Member<T> | undefined;
  private tail: Member<T> | undefined;

  get first(): T | undefined {
    return this.head?.value;
  }

  get isEmpty(): boolean {
    return this.head === undefined;
  }

  add(value: T): Member<T> {
    const member = new Member(value, this);
    this.append(member);
    return member;
  }

  /** @internal */
  append(member: Member<T>): void {
    member.before = this.tail;
    if (this.tail) this.tail.after = member;
    else this.head = member;
    this.tail = member;
  }

  /** All values, in their order, as they are now. */
  get values(): readonly T[] {
    const values: T[] = [];
    for (let member = this.head; member; member = member.after) values.push(member.value);
    return values;
  }

  /** @internal */
  remove(member: Member<T>): void {
    const { before, after } = member;
    // Whoever still has the member would otherwise keep its neighbours from being freed.
    member.before = member.after = undefined;
    if (before) before.after = after;
    else this.head = after;
    if (after) after.before = before;
    else this.tail = before;
  }
}
