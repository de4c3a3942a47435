// The operators: what a mutant changes. Each works on the syntax tree, so comments, types and imports stay as they are.
import ts from 'typescript';

const K = ts.SyntaxKind;

/** A comparison becomes its neighbour at the boundary, and its contrary. */
const COMPARISONS = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '==': ['!='],
  '!=': ['=='],
};
const ARITHMETIC = { '+': '-', '-': '+', '*': '/', '/': '*', '%': '*', '**': '*' };
const LOGIC = { '&&': ['||'], '||': ['&&'] };
const ASSIGNMENTS = {
  '+=': ['-='],
  '-=': ['+='],
  '*=': ['/='],
  '/=': ['*='],
  '??=': ['&&=', '='],
  '||=': ['&&='],
  '&&=': ['||='],
};
/** Methods with a counterpart. */
const COUNTERPARTS = {
  min: 'max',
  max: 'min',
  floor: 'ceil',
  ceil: 'floor',
  some: 'every',
  every: 'some',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
};
/** Methods without which the object itself is a value of the same type. */
const FILTERS = new Set(['filter', 'slice', 'sort', 'toSorted', 'reverse', 'trim', 'toLowerCase', 'toUpperCase']);

/** Calls whose strings are for people to read. */
const FOR_PEOPLE = /(?:error|warn|log|debug|verbose|fatal)$/i;
/** Two words in a row. Scripts have lines, and are no prose. */
const PROSE = /^(?!.*\n)[^\n]*[a-z]{2,} [a-z]+/is;

/**
 * @typedef {{ start: number, end: number, text: string, operator: string }} Edit a range of the source and its substitute
 */

/** All edits of one file, in the order of the source, each result once. `checker` knows the types of the file. */
export function editsOf(source, checker) {
  const edits = new Map();
  const add = (operator, start, end, text) => {
    const result = source.text.slice(0, start) + text + source.text.slice(end);
    if (result !== source.text && !edits.has(result)) edits.set(result, { start, end, text, operator });
  };
  const replace = (operator, node, text) => add(operator, node.getStart(source), node.getEnd(), text);
  const textOf = (node) => node.getText(source);
  visit(source);
  return [...edits.values()].sort((a, b) => a.start - b.start || a.end - b.end);

  function visit(node) {
    if (isWithoutEffect(node)) return;
    change(node);
    ts.forEachChild(node, visit);
  }

  function change(node) {
    if (ts.isBinaryExpression(node)) changeBinary(node);
    else if (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) changeUnary(node);
    else if (ts.isNumericLiteral(node)) changeNumber(node);
    else if (node.kind === K.TrueKeyword) replace('boolean', node, 'false');
    else if (node.kind === K.FalseKeyword) replace('boolean', node, 'true');
    else if (isText(node)) changeText(node);
    else if (ts.isArrayLiteralExpression(node)) changeList(node, node.elements, '[]');
    else if (ts.isObjectLiteralExpression(node)) changeList(node, node.properties, undefined);
    else if (ts.isExpressionStatement(node)) replace('statement', node, '{}');
    else if (isJump(node)) replace('jump', node, '{}');
    else if (ts.isBlock(node)) changeBody(node);
    if (ts.isCallExpression(node)) changeCall(node);
    if (node.questionDotToken && !ts.isPropertySignature(node)) changeChain(node);
    if (conditionOf(node)) changeCondition(node, conditionOf(node));
  }

  function changeBinary({ left, operatorToken, right }) {
    const sign = textOf(operatorToken);
    for (const other of COMPARISONS[sign] ?? []) replace('comparison', operatorToken, other);
    for (const other of LOGIC[sign] ?? []) replace('logic', operatorToken, other);
    for (const other of ASSIGNMENTS[sign] ?? []) replace('assignment', operatorToken, other);
    // Of two texts there is a sum only.
    const isSum = sign === '+' && isStringLike(left, right);
    if (ARITHMETIC[sign] && !isSum) replace('arithmetic', operatorToken, ARITHMETIC[sign]);
    if (sign !== '??') return;
    add('logic', left.getEnd(), right.getEnd(), '');
    // Only a number, a text or a boolean can be falsy without being nullish.
    if (mayBeFalsy(left) && !isMixed(left.parent)) replace('logic', operatorToken, '||');
  }

  function changeUnary(node) {
    const operand = textOf(node.operand);
    const isPrefix = ts.isPrefixUnaryExpression(node);
    if (node.operator === K.ExclamationToken) replace('negation', node, operand);
    if (node.operator === K.MinusToken) replace('arithmetic', node, operand);
    const other = { [K.PlusPlusToken]: '--', [K.MinusMinusToken]: '++' }[node.operator];
    if (other) replace('arithmetic', node, isPrefix ? other + operand : operand + other);
  }

  function changeNumber(node) {
    const value = Number(node.text);
    replace('number', node, String(value + 1));
    const less = value - 1;
    replace('number', node, less < 0 ? `(${less})` : String(less));
  }

  function changeText(node) {
    if (isForPeople(node)) return;
    const parent = node.parent;
    const isName = ts.isPropertyAssignment(parent) && parent.name === node;
    const isTagged = ts.isTaggedTemplateExpression(parent);
    if (isName || isTagged || ts.isExternalModuleReference(parent)) return;
    replace('text', node, ts.isStringLiteral(node) && node.text === '' ? "'mutated'" : "''");
  }

  function changeList(node, items, empty) {
    if (empty !== undefined && items.length > 0 && !isTarget(node)) replace('list', node, empty);
    for (const item of items) {
      if (ts.isSpreadElement(item) || ts.isSpreadAssignment(item)) removeItem(item, items);
    }
  }

  function removeItem(item, items) {
    const index = items.indexOf(item);
    const next = items[index + 1];
    const end = next ? next.getStart(source) : item.getEnd();
    add('spread', item.getStart(source), end, '');
  }

  function changeBody(block) {
    const { parent } = block;
    if (ts.isFunctionLike(parent) && block.statements.length > 0 && mayEndEarly(parent)) replace('body', block, '{}');
  }

  /** Whether the function may end without a value. The compiler would refuse an empty body of any other. */
  function mayEndEarly(node) {
    if (ts.isConstructorDeclaration(node) || ts.isSetAccessor(node)) return true;
    const signature = checker.getSignatureFromDeclaration(node);
    const type = signature && checker.getReturnTypeOfSignature(signature);
    const result = type && (checker.getAwaitedType(type) ?? type);
    const parts = result?.isUnion() ? result.types : [result];
    const flags = ts.TypeFlags.VoidLike | ts.TypeFlags.Any | ts.TypeFlags.Unknown;
    return parts.some((part) => part !== undefined && (part.flags & flags) !== 0);
  }

  function changeCall(call) {
    for (const argument of call.arguments) if (ts.isSpreadElement(argument)) removeItem(argument, call.arguments);
    const callee = call.expression;
    if (!ts.isPropertyAccessExpression(callee)) return;
    const { name } = callee;
    const counterpart = Object.hasOwn(COUNTERPARTS, name.text) ? COUNTERPARTS[name.text] : undefined;
    if (counterpart !== undefined) replace('method', name, counterpart);
    if (FILTERS.has(name.text)) replace('method', call, textOf(callee.expression));
  }

  function changeChain(node) {
    const dot = node.questionDotToken;
    if (dot.kind !== K.QuestionDotToken) return;
    replace('chain', dot, ts.isPropertyAccessExpression(node) ? '.' : '');
  }

  function changeCondition(node, condition) {
    replace('condition', condition, 'false');
    const isLoop = ts.isIterationStatement(node, false);
    if (!isLoop) replace('condition', condition, 'true');
    const isPlain = !ts.isBinaryExpression(condition) && !ts.isPrefixUnaryExpression(condition);
    if (isPlain && !isLoop) replace('negation', condition, `!(${textOf(condition)})`);
  }

  /** Whether the operands of `??` would stand beside `&&` or `||` without parentheses. */
  function isMixed({ left, parent }) {
    const isCoalescing = (node) => ts.isBinaryExpression(node) && node.operatorToken.kind === K.QuestionQuestionToken;
    return isCoalescing(left) || isCoalescing(parent);
  }

  function isStringLike(...nodes) {
    return nodes.some((node) => (checker.getTypeAtLocation(node).flags & ts.TypeFlags.StringLike) !== 0);
  }

  function mayBeFalsy(node) {
    const type = checker.getNonNullableType(checker.getTypeAtLocation(node));
    const parts = type.isUnion() ? type.types : [type];
    const flags = ts.TypeFlags.StringLike | ts.TypeFlags.NumberLike | ts.TypeFlags.BooleanLike | ts.TypeFlags.Any;
    return parts.some((part) => (part.flags & flags) !== 0);
  }
}

/** Imports, types and what the compiler leaves out. */
function isWithoutEffect(node) {
  return (
    ts.isTypeNode(node) ||
    ts.isImportDeclaration(node) ||
    ts.isExportDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isTypeParameterDeclaration(node)
  );
}

function isText(node) {
  return ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateExpression(node);
}

/**
 * A jump without which the function goes on. Not the only statement of an `if`, whose condition could as well be false,
 * and not the last statement of a function, which the compiler would miss.
 */
function isJump(node) {
  const { parent } = node;
  if (ts.isContinueStatement(node) || ts.isBreakStatement(node)) return !ts.isIfStatement(parent);
  if (!ts.isReturnStatement(node) || ts.isIfStatement(parent)) return false;
  return !(ts.isBlock(parent) && ts.isFunctionLike(parent.parent));
}

/** `[a, b] = …` is no list but a target. */
function isTarget(node) {
  const { parent } = node;
  return ts.isBinaryExpression(parent) && parent.left === node && parent.operatorToken.kind === K.EqualsToken;
}

function conditionOf(node) {
  if (ts.isIfStatement(node) || ts.isWhileStatement(node) || ts.isDoStatement(node)) return node.expression;
  if (ts.isForStatement(node) || ts.isConditionalExpression(node)) return node.condition;
  return undefined;
}

/** Whether a text is the message of an error or of a log, or part of one. */
function isForPeople(node) {
  if (PROSE.test(node.getText())) return true;
  for (let up = node.parent; up && !ts.isStatement(up); up = up.parent) {
    const isCall = ts.isNewExpression(up) || ts.isCallExpression(up);
    if (isCall && FOR_PEOPLE.test(up.expression.getText())) return true;
    if (ts.isFunctionLike(up)) return false;
  }
  return false;
}
