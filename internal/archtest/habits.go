package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// checkInit finds init functions: start-up that no reader of main can see.
func checkInit(s Source) []string {
	if s.Go == nil || s.Test() || excepted(s.Package(), initAllowed) {
		return nil
	}
	var broken []string
	for _, d := range s.Go.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			broken = append(broken, s.at(f.Pos())+": no init functions; construct it where it is used")
		}
	}
	return broken
}

// checkSleep finds time.Sleep outside tests: it cannot be cancelled, and nobody can wake it.
func checkSleep(s Source) []string {
	if s.Go == nil || s.Test() || excepted(s.Package(), sleepAllowed) {
		return nil
	}
	var broken []string
	for _, pos := range uses(s.Go, importName(s.Go, "time"), "Sleep") {
		broken = append(broken, s.at(pos)+": no time.Sleep; wait for a timer and a context together")
	}
	return broken
}

// The words are put together here so that this file does not contain them.
var unfinished = regexp.MustCompile(`\b(` + "TO" + "DO" + `|` + "FIX" + "ME" + `)\b`)

// checkUnfinished finds notes about work that is left. In Go only comments count: context has a function of that name.
func checkUnfinished(s Source) []string {
	var broken []string
	complain := func(place, text string) {
		if word := unfinished.FindString(text); word != "" {
			broken = append(broken, fmt.Sprintf("%s: no %s in the repository; do it, or open an issue", place, word))
		}
	}
	if !strings.HasSuffix(s.Path, ".go") {
		for i, line := range strings.Split(string(s.Text), "\n") {
			complain(fmt.Sprintf("%s:%d", s.Path, i+1), line)
		}
		return broken
	}
	if s.Go == nil {
		return nil
	}
	for _, group := range s.Go.Comments {
		for _, c := range group.List {
			complain(s.at(c.Pos()), c.Text)
		}
	}
	return broken
}

// private are texts that only make sense on the machine of their author. Pieces are joined so that this file has none.
// One of the hints is in every text that has any: most files have none, and need no pattern.
var private = []struct {
	what    string
	hints   []string
	pattern *regexp.Regexp
}{
	{"a directory beside the repository", []string{"../"}, regexp.MustCompile(`\.\./` + `shared\b`)},
	{"a path of one machine", []string{"/work" + "/", "/root" + "/", "/home" + "/", "/Users" + "/"},
		regexp.MustCompile(`(^|[^\w./-])/(work|root|home/\w+|Users/\w+)` + `/`)},
	{"the host of a package registry", []string{"golang.", "npmjs.", "pypi.", "pythonhosted.", "maven.", "docker."},
		regexp.MustCompile(`\b(proxy|sum)\.` + `golang\.org\b|\bregistry\.` + `npmjs\.org\b` +
			`|\b(pypi|files\.pythonhosted)\.` + `org\b|\brepo1?\.maven\.` + `(apache\.)?org\b|\bregistry-1\.` + `docker\.io\b`)},
}

// checkPrivate finds what would break, or mean nothing, on another machine.
func checkPrivate(s Source) []string {
	var broken []string
	text := string(s.Text)
	for _, p := range private {
		if !slices.ContainsFunc(p.hints, func(hint string) bool { return strings.Contains(text, hint) }) {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if found := p.pattern.FindString(line); found != "" {
				broken = append(broken, fmt.Sprintf("%s:%d: mentions %s: %q", s.Path, i+1, p.what, strings.TrimSpace(found)))
			}
		}
	}
	return broken
}

// checkLeaks finds packages with tests whose TestMain, or what stands in its file, does not look for leaked goroutines.
func checkLeaks(sources []Source) []string {
	tested, guarded := map[string]bool{}, map[string]bool{}
	for _, s := range sources {
		if s.Go == nil || !s.Test() {
			continue
		}
		for _, d := range s.Go.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok || f.Recv != nil:
			case f.Name.Name == "TestMain":
				leak := importName(s.Go, "go.uber.org/goleak")
				guarded[s.Package()] = len(uses(s.Go, leak, "VerifyTestMain"))+len(uses(s.Go, leak, "Find")) > 0
			case strings.HasPrefix(f.Name.Name, "Test"):
				tested[s.Package()] = true
			}
		}
	}
	var broken []string
	for name := range tested {
		if !guarded[name] && !excepted(name, leakAllowed) {
			broken = append(broken, name+": its tests need a TestMain with goleak.VerifyTestMain")
		}
	}
	slices.Sort(broken)
	return broken
}
