package archtest

import (
	"fmt"
	"strings"
)

// Counted are the folders whose code is counted: the drivers, the engine, and what both halves of a pair share instead
// of having it twice, so that code does not get less by moving. driver/remote is another kind of driver.
var Counted = []string{
	"driver/memory", "driver/disk", "driver/redis", "driver/redisstream", "driver/kafka",
	"internal/engine", "internal/scheduler", "internal/container", "internal/redisconn",
	"internal/redisshell", "internal/refusal",
}

// MostLines is what Counted may have: a tenth less than the 34,821 lines at 08c02f7, before the pairs of drivers began
// to share their code, wrapped at 120 columns as they are now. What is new there replaces something once it is reached.
//
// Package clauses and imports do not count: fewer files are not less code, and would cost the names of their roles.
const MostLines = 31_339

// countLines counts the lines of Go and Lua of each folder that are neither empty nor comments, package clauses or
// imports, without tests.
func countLines(sources []Source, folders []string) map[string]int {
	lines := map[string]int{}
	for _, s := range sources {
		comment, counted := commentOf(s.Path)
		if !counted || s.Test() {
			continue
		}
		for _, folder := range folders {
			if strings.HasPrefix(s.Path, folder+"/") {
				lines[folder] += codeLines(string(s.Text), comment)
			}
		}
	}
	return lines
}

// commentOf returns how a comment begins in a file, and whether it is code at all.
func commentOf(path string) (begin string, code bool) {
	switch {
	case strings.HasSuffix(path, ".go"):
		return "//", true
	case strings.HasSuffix(path, ".lua"):
		return "--", true
	}
	return "", false
}

func codeLines(text, comment string) (n int) {
	importing := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, comment):
		case importing:
			importing = line != ")"
		case strings.HasPrefix(line, "package ") || strings.HasPrefix(line, "import "):
			importing = line == "import ("
		default:
			n++
		}
	}
	return n
}

// checkSize complains when the folders together have more lines than they may.
func checkSize(lines map[string]int, most int) (sum int, broken []string) {
	for _, n := range lines {
		sum += n
	}
	if sum > most {
		broken = append(broken, fmt.Sprintf("the drivers and the engine have %d lines, more than %d: "+
			"see what stands twice, or what nobody needs any more", sum, most))
	}
	return sum, broken
}
