// The ends of lines that end a statement: all but those before a line that begins with `|>`, `->`, `(`, `{` or `else`.
// Between brackets the grammar expects none.

#include "tree_sitter/parser.h"

enum { NEWLINE };

void *tree_sitter_arch_external_scanner_create(void) { return 0; }
void tree_sitter_arch_external_scanner_destroy(void *payload) { (void)payload; }
unsigned tree_sitter_arch_external_scanner_serialize(void *payload, char *buffer) {
  (void)payload, (void)buffer;
  return 0;
}
void tree_sitter_arch_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  (void)payload, (void)buffer, (void)length;
}

static bool is_space(int32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\n'; }

static bool is_word(int32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool next_is(TSLexer *lexer, const char *text) {
  for (; *text; text++) {
    if (lexer->lookahead != *text) return false;
    lexer->advance(lexer, false);
  }
  return true;
}

static bool continues(TSLexer *lexer) {
  switch (lexer->lookahead) {
    case '(':
    case '{':
      return true;
    case '|':
      return next_is(lexer, "|>");
    case '-':
      return next_is(lexer, "->");
    case 'e':
      return next_is(lexer, "else") && !is_word(lexer->lookahead);
    default:
      return false;
  }
}

bool tree_sitter_arch_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid_symbols) {
  (void)payload;
  if (!valid_symbols[NEWLINE]) return false;
  while (is_space(lexer->lookahead) && lexer->lookahead != '\n') lexer->advance(lexer, true);
  if (lexer->lookahead != '\n') return false;
  while (is_space(lexer->lookahead)) lexer->advance(lexer, false);
  lexer->mark_end(lexer);
  while (lexer->lookahead == '#') {  // comments and the line ends between them do not matter
    while (lexer->lookahead != '\n' && !lexer->eof(lexer)) lexer->advance(lexer, false);
    while (is_space(lexer->lookahead)) lexer->advance(lexer, false);
  }
  if (continues(lexer)) return false;
  lexer->result_symbol = NEWLINE;
  return true;
}
