// What no regular expression can follow: comments between slash and star, which nest, and `#` lines, where `#` must be the first on
// its line.

#include "tree_sitter/parser.h"

enum TokenType { BLOCK_COMMENT, INCLUDE };

void *tree_sitter_pgl_external_scanner_create(void) { return NULL; }
void tree_sitter_pgl_external_scanner_destroy(void *payload) {}
unsigned tree_sitter_pgl_external_scanner_serialize(void *payload, char *buffer) { return 0; }
void tree_sitter_pgl_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {}

bool tree_sitter_pgl_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid_symbols) {
  if (!valid_symbols[BLOCK_COMMENT] && !valid_symbols[INCLUDE]) return false;
  bool is_first = lexer->get_column(lexer) == 0;
  while (lexer->lookahead == ' ' || (lexer->lookahead >= '\t' && lexer->lookahead <= '\r')) {
    is_first |= lexer->lookahead == '\n';
    lexer->advance(lexer, true);
  }
  if (lexer->lookahead == '#' && is_first) {
    while (lexer->lookahead != '\n' && !lexer->eof(lexer)) lexer->advance(lexer, false);
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
