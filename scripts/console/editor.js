// The console's editor: SQL with completion from the catalog, and the mistake underlined where it stands.
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightSpecialChars, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { PostgreSQL, sql } from "@codemirror/lang-sql";
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { setDiagnostics } from "@codemirror/lint";
import { tags } from "@lezer/highlight";

// Colours are the page's own variables, so that dark mode needs no second theme.
const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-word)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.comment], color: "var(--faint)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--code-name)" },
]);

// What can be asked, and nothing else. A column stands before a table, a table before a function, a function before a word.
function completions(catalog) {
  const option = (type, boost) => ({ label, detail, info }) => ({ label, detail, info, type, boost });
  const options = [
    ...catalog.columns.map(option("property", 3)),
    ...catalog.tables.map(option("class", 2)),
    ...catalog.functions.map(option("function", 1)),
    ...catalog.words.map((label) => ({ label, type: "keyword" })),
  ];
  return (context) => {
    const word = context.matchBefore(/[\p{L}_][\p{L}\p{N}_]*/u);
    if (!word && !context.explicit) return null;
    return { from: word ? word.from : context.pos, options, validFor: /^[\p{L}\p{N}_]*$/u };
  };
}

export function makeEditor(parent, { doc, catalog, nonce, label, changed, run }) {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc,
      extensions: [
        EditorView.cspNonce.of(nonce),
        lineNumbers(),
        highlightSpecialChars(),
        history(),
        drawSelection(),
        bracketMatching(),
        closeBrackets(),
        EditorView.lineWrapping,
        sql({ dialect: PostgreSQL }),
        syntaxHighlighting(colours),
        autocompletion({ override: [completions(catalog)], icons: false }),
        placeholder("SELECT … FROM …"),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        // Tab moves on to the next control, as everywhere on a page; Ctrl-Enter asks.
        keymap.of([
          { key: "Mod-Enter", run: () => (run(), true) },
          ...closeBracketsKeymap,
          ...completionKeymap,
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        EditorView.updateListener.of((update) => update.docChanged && changed()),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    focus: () => view.focus(),
    replace: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    insert: (text) => {
      view.dispatch(view.state.replaceSelection(text));
      view.focus();
    },
    // Marks the characters of a refusal, or none. Spans count code points; the editor counts UTF-16 units.
    mark: (span, message) => {
      const marks = [];
      if (span) {
        const points = Array.from(view.state.doc.toString());
        const place = (at) => points.slice(0, at).join("").length;
        const from = Math.min(place(span[0]), view.state.doc.length);
        const to = Math.min(Math.max(place(span[1]), from + 1), view.state.doc.length);
        marks.push({ from: Math.min(from, to), to, severity: "error", message });
      }
      view.dispatch(setDiagnostics(view.state, marks));
    },
  };
}
