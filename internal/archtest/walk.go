package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// WalkFile follows one message through the code, station by station.
const WalkFile = "docs/walk.md"

// maxStations is how many a walk has at most: who has read more has forgotten the first.
const maxStations = 15

// maxPublishFiles is in how many files the stations of a walk lie at most, until its message is received.
const maxPublishFiles = 12

// station is one row of a walk.
type station struct {
	walk, file, function string // a method as "Type.Name"
}

// parseWalks reads the stations of all walks: rows below a heading whose second and third cell are a file and a
// function.
func parseWalks(document string) []station {
	var stations []station
	walk := ""
	for line := range strings.Lines(document) {
		if name, heading := strings.CutPrefix(line, "## "); heading {
			walk = strings.TrimSpace(name)
		}
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		file, function := quoted.FindStringSubmatch(cells[2]), quoted.FindStringSubmatch(cells[3])
		if file != nil && function != nil {
			stations = append(stations, station{walk, file[1], function[1]})
		}
	}
	return stations
}

// isWalk reports whether a section follows a message: one that never comes to a Receive is a table to look things up
// in, as long as it has to be.
func isWalk(stations []station, section string) bool {
	return slices.ContainsFunc(stations, func(s station) bool {
		return s.walk == section && strings.HasSuffix(s.function, ".Receive")
	})
}

// checkWalks complains about stations that are not in the code, and about walks that are too long.
func checkWalks(stations []station, sources []Source) []string {
	functions := map[string]bool{}
	for _, s := range sources {
		if s.Go == nil {
			continue
		}
		for _, d := range s.Go.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				functions[s.Path+" "+functionName(f)] = true
			}
		}
	}
	var broken []string
	length := map[string]int{}
	for _, s := range stations {
		if !functions[s.file+" "+s.function] {
			broken = append(broken, fmt.Sprintf("%s: %s: %s has no function %s: tell where the message passes now", WalkFile,
				s.walk, s.file, s.function))
		}
		if length[s.walk]++; length[s.walk] == maxStations+1 && isWalk(stations, s.walk) {
			broken = append(broken, fmt.Sprintf("%s: %s has more than %d stations: leave out what decides nothing", WalkFile,
				s.walk, maxStations))
		}
	}
	return append(broken, checkPublishFiles(stations)...)
}

// checkPublishFiles complains about walks that lead a publish through too many files.
func checkPublishFiles(stations []station) []string {
	var broken []string
	files, received := map[string]map[string]bool{}, map[string]bool{}
	for _, s := range stations {
		received[s.walk] = received[s.walk] || strings.HasSuffix(s.function, ".Receive")
		if received[s.walk] || !isWalk(stations, s.walk) {
			continue
		}
		if files[s.walk] == nil {
			files[s.walk] = map[string]bool{}
		}
		if known := files[s.walk][s.file]; !known && len(files[s.walk]) == maxPublishFiles {
			const text = "%s: %s leads a publish through more than %d files"
			broken = append(broken, fmt.Sprintf(text, WalkFile, s.walk, maxPublishFiles))
		}
		files[s.walk][s.file] = true
	}
	return broken
}

// functionName is the name of a function, with its receiver's type before it.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	name, _ := receiver.(*ast.Ident)
	if name == nil {
		return f.Name.Name
	}
	return name.Name + "." + f.Name.Name
}
