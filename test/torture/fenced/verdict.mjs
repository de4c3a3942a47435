// What the tables have to show after the torture of fenced writes.

/**
 * Each commit wrote the version of its row, its token and what it had read. In the order of the versions, tokens never
 * fall, and each commit has read what the one before wrote.
 */
export function judge(stock, ledger, totals) {
  const found = {
    commits: ledger.length,
    late: 0,
    lost: 0,
    beside: totals['committed beside a fenced transaction'] ?? 0,
  };
  for (const { item, count } of stock) {
    const commits = ledger.filter((each) => each.item === item).sort((a, b) => a.version - b.version);
    commits.forEach((commit, index) => {
      const before = commits[index - 1];
      if (before && Number(commit.token) < Number(before.token)) found.late++;
      if (Number(commit.base) !== (before ? Number(before.base) + 1 : 0)) found.lost++;
    });
    if (commits.length > 0 && Number(count) !== Number(commits.at(-1).base) + 1) found.lost++;
  }
  return found;
}
