// The grammar of PGL for tree-sitter: for editors that highlight, fold and select by it.
//
// It accepts what the compiler's parser accepts, and hardly anything else; a test holds both to that on every workload of the source tree,
// and on thousands of variants with a mistake. It does not know types, names or values: those mistakes are told by `assay lsp`. After a
// change, `make grammar` generates the parser.

/// <reference types="tree-sitter-cli/dsl" />

// Loosest first, as in the reference of the language.
const LEVEL = { range: 1, or: 2, and: 3, xor: 4, not: 5, equal: 6, compare: 7, plus: 8, times: 9, sign: 10 };

const listOf = (item) => seq(item, repeat(seq(',', item)), optional(','));

module.exports = grammar({
  name: 'pgl',

  // What no regular expression can follow: src/scanner.c.
  externals: ($) => [$.block_comment, $.include],
  extras: ($) => [/[ \t\r\n\v\f]/, $.line_comment, $.block_comment, $.include],
  word: ($) => $.identifier,
  // Words that are no names, except after a point.
  reserved: { global: (_) => ['if', 'then', 'else', 'every', 'do'], member: (_) => [] },

  rules: {
    source_file: ($) => repeat($._statement),

    line_comment: (_) => token(seq('//', /[^\n]*/)),
    _statement: ($) =>
      choice(seq($._simple_statement, ';'), $.if_statement, $.every_statement, $.block, ';'),
    _simple_statement: ($) => choice($.declaration, $.assignment, $.group_assignment, $.call),

    // The last `;` of a block may be missing.
    block: ($) => seq('{', repeat($._statement), optional($._simple_statement), '}'),

    declaration: ($) =>
      seq(field('type', $.type), field('name', $.identifier), optional(seq('=', field('value', $._assigned)))),
    type: ($) => seq($.identifier, repeat(seq('[', ']'))),
    assignment: ($) => seq(field('target', $.path), '=', field('value', $._assigned)),
    group_assignment: ($) => seq('[', listOf($.group_item), ']', '=', field('value', $._expression)),
    group_item: ($) => seq($.path, optional(seq(':', $._expression))),
    _assigned: ($) => choice($.block, $._expression),

    if_statement: ($) =>
      seq('if', field('condition', $._expression), 'then', $.block, optional(seq('else', $.block))),
    every_statement: ($) => seq('every', field('goal', $._expression), 'do', $.block),

    _expression: ($) =>
      choice(
        $.number, $.string, $.quoted, $.array, $.call, $.moment, $.path, $.regex_test, $.unary, $.binary,
        seq('(', $._expression, ')'),
      ),

    unary: ($) =>
      choice(
        prec(LEVEL.not, seq('!', $._expression)),
        prec(LEVEL.sign, seq(choice('-', '+'), $._expression)),
      ),
    binary: ($) =>
      choice(
        ...[
          [LEVEL.range, ['..', '**']],
          [LEVEL.or, ['||']],
          [LEVEL.and, ['&&']],
          [LEVEL.xor, ['^^']],
          [LEVEL.equal, ['==', '!=']],
          [LEVEL.compare, ['<', '<=', '>', '>=']],
          [LEVEL.plus, ['+', '-']],
          [LEVEL.times, ['*', '/', '%', '^']],
        ].map(([level, marks]) =>
          prec.left(level, seq($._expression, field('operator', choice(...marks)), $._expression)),
        ),
      ),

    moment: (_) => choice('now', 'lmt', 'nmt'),
    call: ($) => seq(field('name', $.identifier), '(', optional(listOf($._expression)), ')'),
    array: ($) => seq('[', optional(listOf($.item)), ']'),
    item: ($) => seq($._expression, optional(seq(':', field('probability', $._expression)))),
    path: ($) => seq($.identifier, repeat(seq('.', reserved('member', $.identifier)))),
    regex_test: ($) => seq($.path, $.regex),

    identifier: (_) => /[A-Za-z_][A-Za-z0-9_]*/,
    // A percent sign or a unit belongs to the number it directly follows; `2.` is one, and `1..5` has two.
    number: (_) =>
      seq(
        /[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?(%|[A-Za-z_][A-Za-z0-9_]*)?/,
        optional(seq(token.immediate('.'), optional(choice(token.immediate('%'), token.immediate(/[A-Za-z_][A-Za-z0-9_]*/))))),
      ),
    string: (_) => /"([^"\\\n]|\\[^\n])*"/,
    // An address, a date or a header field.
    quoted: (_) => /'[^'\n]*'/,
    // With its operator. `==//` and `==/*` end in a comment.
    regex: (_) =>
      token(
        choice(
          seq('=~', '/', /([^/\\\n]|\\[^\n])*/, '/', /[A-Za-z]*/),
          seq('=~', '@', /([^@\\\n]|\\[^\n])*/, '@', /[A-Za-z]*/),
          seq('==', '/', /([^/*\\\n]|\\[^\n])([^/\\\n]|\\[^\n])*/, '/', /[A-Za-z]*/),
          seq('==', '@', /([^@\\\n]|\\[^\n])*/, '@', /[A-Za-z]*/),
        ),
      ),
  },
});
