package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// LessonsFile holds the table of lessons: which test would catch which known defect of other systems.
const LessonsFile = "docs/testing.md"

// Areas are the values of the status column: "now" means that the tests of the row exist. All parts of Ferry exist, so
// that no row may wait for one.
var Areas = []string{"now"}

// Lesson is one row of the table.
type Lesson struct {
	ID     string
	Tests  []string // "worker.TestStop", "driver/memory.TestDriver" or "drivertest:case-name"; the root package is "ferry"
	Status []string
}

var (
	lessonRow  = regexp.MustCompile(`^\| *([LR]\d+) *\|(.*)\|(.*)\|(.*)\|$`)
	quoted     = regexp.MustCompile("`([^`]+)`")
	lessonNote = regexp.MustCompile(`^//\s*Lessons?:\s*(.*)$`)
	lessonID   = regexp.MustCompile(`[LR]\d+`)
)

// parseLessons reads the rows of the table out of a document.
func parseLessons(document string) []Lesson {
	var lessons []Lesson
	for _, line := range strings.Split(document, "\n") {
		cells := lessonRow.FindStringSubmatch(strings.TrimSpace(line))
		if cells == nil {
			continue
		}
		lesson := Lesson{ID: cells[1]}
		for _, name := range quoted.FindAllStringSubmatch(cells[3], -1) {
			lesson.Tests = append(lesson.Tests, name[1])
		}
		for _, area := range strings.Split(cells[4], ",") {
			lesson.Status = append(lesson.Status, strings.TrimSpace(area))
		}
		lessons = append(lessons, lesson)
	}
	return lessons
}

// testIndex knows every test of the repository by the name the table uses, and the lessons noted at each.
type testIndex struct {
	exists map[string]bool
	noted  map[string][]string // test name to lesson ids
	stray  []string            // notes that stand at no test
}

// indexTests collects test functions, the cases of the conformance suite, and notes of the form "Lesson: L3, R2".
func indexTests(sources []Source) testIndex {
	index := testIndex{exists: map[string]bool{}, noted: map[string][]string{}}
	cases := suiteCases(sources)
	for _, name := range cases.names {
		index.exists["drivertest:"+name] = true
	}
	for _, s := range sources {
		if s.Go != nil {
			index.addFile(s, cases)
		}
	}
	return index
}

func (index *testIndex) addFile(s Source, cases suite) {
	type span struct {
		from, to token.Pos
		name     string
	}
	var spans []span
	for _, d := range s.Go.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil {
			continue
		}
		name := testName(s, f, cases)
		if name == "" {
			continue
		}
		index.exists[name] = true
		from := f.Pos()
		if f.Doc != nil {
			from = f.Doc.Pos()
		}
		spans = append(spans, span{from, f.End(), name})
	}
	for _, group := range s.Go.Comments {
		for _, comment := range group.List {
			note := lessonNote.FindStringSubmatch(comment.Text)
			if note == nil {
				continue
			}
			i := slices.IndexFunc(spans, func(sp span) bool { return sp.from <= comment.Pos() && comment.Pos() < sp.to })
			if i < 0 {
				index.stray = append(index.stray, s.at(comment.Pos())+": this note stands at no test")
				continue
			}
			index.noted[spans[i].name] = append(index.noted[spans[i].name], lessonID.FindAllString(note[1], -1)...)
		}
	}
}

// testName is how the table calls a function, or "" when it is no test.
func testName(s Source, f *ast.FuncDecl, cases suite) string {
	if s.Package() == suitePackage && !s.Test() {
		if name, ok := cases.functions[f.Name.Name]; ok {
			return "drivertest:" + name
		}
		return ""
	}
	if !s.Test() || f.Name.Name == "TestMain" {
		return ""
	}
	for _, kind := range []string{"Test", "Fuzz", "Example", "Benchmark"} {
		if strings.HasPrefix(f.Name.Name, kind) {
			if s.Package() == "." {
				return "ferry." + f.Name.Name
			}
			return s.Package() + "." + f.Name.Name
		}
	}
	return ""
}

// checkLessons compares the table and the tests both ways.
func checkLessons(lessons []Lesson, index testIndex) []string {
	broken := slices.Clone(index.stray)
	rows := map[string]Lesson{}
	for _, lesson := range lessons {
		if _, twice := rows[lesson.ID]; twice {
			broken = append(broken, lesson.ID+" has two rows")
		}
		rows[lesson.ID] = lesson
		broken = append(broken, checkLesson(lesson, index)...)
	}
	for _, name := range sortedKeys(index.noted) {
		for _, id := range index.noted[name] {
			if !slices.Contains(rows[id].Tests, name) {
				broken = append(broken, fmt.Sprintf("%s says that it is a test of %s, but that row of %s does not name it",
					name, id, LessonsFile))
			}
		}
	}
	return broken
}

func checkLesson(lesson Lesson, index testIndex) []string {
	var broken []string
	for _, area := range lesson.Status {
		if !slices.Contains(Areas, area) {
			broken = append(broken, fmt.Sprintf("%s: status %q is none of %v", lesson.ID, area, Areas))
		}
	}
	if !slices.Contains(lesson.Status, "now") {
		return broken
	}
	if len(lesson.Tests) == 0 {
		broken = append(broken, lesson.ID+": status is now, but no test is named")
	}
	for _, name := range lesson.Tests {
		if !index.exists[name] {
			broken = append(broken, fmt.Sprintf("%s: the test %s does not exist", lesson.ID, name))
		}
	}
	return broken
}
