// Objects of which there may be as many as locks extend it, and need no entry. A member is in one list at most.
export class ListMember<M extends ListMember<M>> {
  /** @internal */
  before: M | undefined = undefined;
  /** @internal */
  after: M | undefined = undefined;
}

// Used instead of a `Set` where members come and go all the time: V8 links the tables that a set or a map has outgrown,
// and so retains members that were removed long ago until the next full garbage collection.
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

  // The member must be in no list.
  add(member: M, after?: M): void {
    const before = after ? after.before : this.tail;
    member.before = before;
    member.after = after;
    if (before) before.after = member;
    else this.head = member;
    if (after) after.before = member;
    else this.tail = member;
  }

  get members(): readonly M[] {
    const members: M[] = [];
    for (let member = this.head; member; member = member.after) members.push(member);
    return members;
  }

  // Has no effect on a member that has left before.
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
