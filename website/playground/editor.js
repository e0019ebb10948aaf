/** The editor: roles in the margin, and diagnostics under their lines. */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentUnit } from "@codemirror/language";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, highlightActiveLine, keymap, lineNumbers, WidgetType } from "@codemirror/view";

import { arch } from "./highlighting.js";

const setMarks = StateEffect.define();

const marks = StateField.define({
  create: () => Decoration.none,
  update(shown, transaction) {
    const found = transaction.effects.find((effect) => effect.is(setMarks));
    return found ? found.value : shown.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

class Message extends WidgetType {
  constructor(diagnostic) {
    super();
    this.diagnostic = diagnostic;
  }

  eq(other) {
    return other.diagnostic.rendered === this.diagnostic.rendered;
  }

  toDOM() {
    const under = document.createElement("div"); // whose height has no margins, for the line numbers
    under.className = "under";
    under.append(messageOf(this.diagnostic));
    return under;
  }
}

/** A diagnostic as an element. */
export function messageOf({ severity, code, message, rest }) {
  const element = document.createElement("div");
  element.className = `message ${severity}`;
  const head = document.createElement("b");
  head.textContent = `${severity}[${code}]`;
  element.append(head, `: ${message}`);
  if (rest) element.append(document.createElement("br"), Object.assign(document.createElement("small"), { textContent: rest }));
  return element;
}

/** Replace an element by an editor. */
export function newEditor(parent, text, onChange) {
  const stateOf = (doc) =>
    EditorState.create({
      doc,
      extensions: [
        lineNumbers(),
        history(),
        bracketMatching(),
        highlightActiveLine(),
        indentUnit.of("  "),
        keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
        EditorView.contentAttributes.of({ "aria-label": "Spec; Escape, then Tab leaves it" }),
        EditorView.updateListener.of((update) => update.docChanged && onChange()),
        marks,
        arch,
      ],
    });
  const view = new EditorView({ state: stateOf(text) });
  parent.replaceChildren(view.dom);
  return {
    get text() {
      return view.state.doc.toString();
    },
    replace(found, replacement) {
      const from = this.text.indexOf(found);
      if (from >= 0) view.dispatch({ changes: { from, to: from + found.length, insert: replacement } });
    },
    open: (doc) => {
      view.setState(stateOf(doc));
      onChange();
    },
    show(diagnostics, lines) {
      const { doc } = view.state;
      const found = [];
      for (const [number, role] of Object.entries(lines ?? {})) {
        found.push(Decoration.line({ class: `role-line role-${role}` }).range(doc.line(Number(number)).from));
      }
      for (const diagnostic of diagnostics.filter(({ from }) => from !== null && from <= doc.length)) {
        const { from, to, severity } = diagnostic;
        const line = doc.lineAt(from);
        const end = Math.min(to, doc.length);
        if (end > from) found.push(Decoration.mark({ class: `found ${severity}` }).range(from, end));
        found.push(Decoration.widget({ widget: new Message(diagnostic), block: true, side: 1 }).range(line.to));
      }
      view.dispatch({ effects: setMarks.of(Decoration.set(found, true)) });
    },
  };
}
