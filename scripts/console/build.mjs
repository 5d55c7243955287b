// Builds src/dither/server/console/static/vendor/ from the packages of package-lock.json:  npm ci && npm run build
import { build } from "esbuild";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const out = join(import.meta.dirname, "../../src/dither/server/console/static/vendor");
mkdirSync(out, { recursive: true });
const made = await build({
  entryPoints: [join(import.meta.dirname, "editor.js")],
  outfile: join(out, "editor.js"),
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none", // the licences are in licences.txt
  metafile: true,
});

const fonts = [
  ["inter", "inter-latin-wght-normal"],
  ["inter", "inter-latin-ext-wght-normal"],
  ["inter", "inter-greek-wght-normal"],
  ["jetbrains-mono", "jetbrains-mono-latin-wght-normal"],
  ["jetbrains-mono", "jetbrains-mono-greek-wght-normal"],
];
const modules = join(import.meta.dirname, "node_modules");
for (const [family, file] of fonts)
  copyFileSync(join(modules, "@fontsource-variable", family, "files", `${file}.woff2`), join(out, `${file}.woff2`));

// Every package of the bundle, and the fonts, with its licence.
const used = new Set(fonts.map(([family]) => `@fontsource-variable/${family}`));
for (const input of Object.keys(made.metafile.inputs)) {
  const found = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) used.add(found[1]);
}
const texts = [...used].sort().map((name) => {
  const folder = join(modules, name);
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (!file || !existsSync(join(folder, file))) throw new Error(`${name} has no licence`);
  return `${name} ${about.version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
});
writeFileSync(join(out, "licences.txt"), texts.join(`\n${"-".repeat(80)}\n\n`));
