/** A member of at most one list. Objects of which there may be as many as locks extend it, and need no entry. */
export class ListMember<M extends ListMember<M>> {
  /** @internal */
  before: M | undefined = undefined;
  /** @internal */
  after: M | undefined = undefined;
}

/**
 * A list with appending at its end and removal anywhere, both in constant time.
 *
 * Used instead of a `Set` where members come and go all the time: V8 links the tables that a set or a map has outgrown,
 * and so retains members that were removed long ago until the next full garbage collection.
 */
export class LinkedList<M extends ListMember<M>> {
  private head: M | undefined;
  private tail: M | undefined;

  get first(): M | undefined {
    return this.head;
  }

  get last(): M | undefined {
    return this.tail;
  }

  get isEmpty(): boolean {
    return this.head === undefined;
  }

  /** Appends a member that is in no list. */
  add(member: M): void {
    member.before = this.tail;
    if (this.tail) this.tail.after = member;
    else this.head = member;
    this.tail = member;
  }

  /** A snapshot of all members, in their order. */
  get members(): readonly M[] {
    const members: M[] = [];
    for (let member = this.head; member; member = member.after) members.push(member);
    return members;
  }

  /** Removes a member of this list. Has no effect if it has left before. */
  remove(member: M): void {
    const { before, after } = member;
    if (!before && this.head !== member) return;
    // Otherwise, a remaining reference to the member would keep its neighbours from being freed.
    member.before = member.after = undefined;
    if (before) before.after = after;
    else this.head = after;
    if (after) after.before = before;
    else this.tail = before;
  }
}
