// SPDX-License-Identifier: BSD-3-Clause
// Runs ruff's WebAssembly build: ruff.cjs DIRECTORY FILE...
const fs = require("fs");

const [directory, ...files] = process.argv.slice(2);
const { PositionEncoding, Workspace } = require(directory);

const workspace = new Workspace({
	"target-version": "py311",
	"line-length": 130,
	lint: {
		select: ["A", "B", "C4", "E", "F", "ISC", "PIE", "PLC", "PLE", "PLW", "RET", "SIM", "UP", "W"],
		ignore: [
			"B905",		// zip() of lists that are equally long by their making
			"C408",		// dict(name=value) reads like the call that it becomes
			"ISC004",	// a long string in a list goes on in the next line
			"SIM115",	// a file that lives as long as its object
			"PLW2901",	// a loop variable that is stripped or split at once
			"SIM105",	// try, except, pass is as clear as suppress()
			"SIM905",	// a list of words as a string that is split
		],
	},
}, PositionEncoding.Utf8);

for (const file of files) {
	for (const found of workspace.check(fs.readFileSync(file, "utf8"))) {
		console.log(`${file}:${found.start_location.row}: ${found.code} ${found.message}`);
		process.exitCode = 1;
	}
}
