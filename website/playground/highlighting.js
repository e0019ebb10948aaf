/** The colors of the language, from the patterns of `archspec.language.highlight`. */

import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { Tag } from "@lezer/highlight";

import styles from "archspec-styles";

const COLORS = {
  "String.Doc": "comment",
  "Comment.Single": "comment",
  String: "string",
  Number: "number",
  "Name.Attribute": "variable",
  "Name.Class": "function",
  "Name.Function": "function",
  "Name.Builtin.Pseudo": "constant",
  "Keyword.Constant": "constant",
  Operator: "operator",
  Punctuation: "punctuation",
};
/** The color variables of the theme by Pygments token; keywords have one color. */

const colorOf = (token) => COLORS[token] ?? (/^(Keyword|Operator\.Word)/.test(token) ? "keyword" : "name");

const tags = Object.fromEntries(
  [...new Set(styles.map(({ token }) => colorOf(token)))].map((color) => [color, Tag.define()]),
);
const patterns = styles.map(({ pattern, token }) => [new RegExp(pattern, "y"), colorOf(token)]);

const language = StreamLanguage.define({
  name: "archspec",
  tokenTable: tags,
  languageData: { commentTokens: { line: "#" } },
  token(stream) {
    if (stream.eatSpace()) return null;
    for (const [pattern, color] of patterns) {
      pattern.lastIndex = stream.pos;
      const found = pattern.exec(stream.string);
      if (found?.[0]) {
        stream.pos += found[0].length;
        return color;
      }
    }
    stream.next();
    return null;
  },
});

const style = HighlightStyle.define(
  Object.entries(tags).map(([color, tag]) => ({ tag, color: `var(--md-code-hl-${color}-color)` })),
);

export const arch = [language, syntaxHighlighting(style)];
