// What no regular expression can follow: comments between slash and star, which nest, and `#include "name"`, where `#` must be the
// first on its line. What stands behind the name is a part of the program.

#include "tree_sitter/parser.h"

enum TokenType { BLOCK_COMMENT, INCLUDE };

void *tree_sitter_pgl_external_scanner_create(void) { return NULL; }
void tree_sitter_pgl_external_scanner_destroy(void *payload) {}
unsigned tree_sitter_pgl_external_scanner_serialize(void *payload, char *buffer) { return 0; }
void tree_sitter_pgl_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {}

static void skip_blanks(TSLexer *lexer) {
  while (lexer->lookahead == ' ' || lexer->lookahead == '\t') lexer->advance(lexer, false);
}

static void skip_line(TSLexer *lexer) {
  while (lexer->lookahead != '\n' && !lexer->eof(lexer)) lexer->advance(lexer, false);
}

// Reads `#include "name"`; false where something else was found.
static bool include_name(TSLexer *lexer) {
  lexer->advance(lexer, false);
  skip_blanks(lexer);
  for (const char *c = "include"; *c; c++) {
    if (lexer->lookahead != *c) return false;
    lexer->advance(lexer, false);
  }
  skip_blanks(lexer);
  if (lexer->lookahead != '"') return false;
  lexer->advance(lexer, false);
  bool is_empty = lexer->lookahead == '"';
  while (lexer->lookahead != '"') {
    if (lexer->lookahead == '\n' || lexer->eof(lexer)) return false;
    lexer->advance(lexer, false);
  }
  lexer->advance(lexer, false);
  return !is_empty;
}

bool tree_sitter_pgl_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid_symbols) {
  if (!valid_symbols[BLOCK_COMMENT] && !valid_symbols[INCLUDE]) return false;
  bool is_first = lexer->get_column(lexer) == 0;
  while (lexer->lookahead == ' ' || (lexer->lookahead >= '\t' && lexer->lookahead <= '\r')) {
    is_first |= lexer->lookahead == '\n';
    lexer->advance(lexer, true);
  }
  if (lexer->lookahead == '#' && is_first) {
    if (!include_name(lexer)) skip_line(lexer);
    lexer->mark_end(lexer);
    lexer->result_symbol = INCLUDE;
    return true;
  }
  if (lexer->lookahead != '/') return false;
  lexer->advance(lexer, false);
  if (lexer->lookahead != '*') return false;
  lexer->advance(lexer, false);
  unsigned depth = 1;
  while (depth > 0) {
    if (lexer->eof(lexer)) return false;
    int32_t c = lexer->lookahead;
    lexer->advance(lexer, false);
    if (c == '*' && lexer->lookahead == '/') {
      lexer->advance(lexer, false);
      depth--;
    } else if (c == '/' && lexer->lookahead == '*') {
      lexer->advance(lexer, false);
      depth++;
    }
  }
  lexer->mark_end(lexer);
  lexer->result_symbol = BLOCK_COMMENT;
  return true;
}
