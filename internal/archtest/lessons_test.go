package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The numbers of rows: a lesson is never dropped.
const (
	rules   = 17
	lessons = 73
)

func TestEveryLessonHasATest(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(filepath.Join(root, LessonsFile))
	if err != nil {
		t.Fatal(err)
	}
	table := parseLessons(string(document))
	report(t, checkLessons(table, indexTests(repository(t))))

	seen := map[string]bool{}
	for _, lesson := range table {
		seen[lesson.ID] = true
	}
	for kind, count := range map[string]int{"R": rules, "L": lessons} {
		for i := 1; i <= count; i++ {
			if id := fmt.Sprintf("%s%d", kind, i); !seen[id] {
				t.Errorf("%s has no row for %s", LessonsFile, id)
			}
		}
	}
	if len(table) != rules+lessons {
		t.Errorf("%s has %d rows, want %d: count new lessons in this test too", LessonsFile, len(table), rules+lessons)
	}
}

func TestLessonsCanFail(t *testing.T) {
	t.Parallel()
	sources := []Source{
		parse("driver/drivertest/cases.go", []byte(`package drivertest
func Cases() []Case {
	return []Case{
		{"expiry-once", expiryOnce},
		{Name: "late-settle", Run: lateSettle},
	}
}
func run(t *testing.T) { t.Run("history", nil) }

// lateSettle is refused.
//
// Lesson: L3
func lateSettle(t *T) {}
func expiryOnce(t *T) {}
`)),
		parse("worker/stop_test.go", []byte(`package worker
// TestStop drains.
// Lesson: R15
func TestStop(t *testing.T) {}
func TestInside(t *testing.T) {
	// Lesson: L5
}
func FuzzDecode(f *testing.F) {}
`)),
		parse("a_test.go", []byte("package ferry\nfunc ExamplePublish() {}\n")),
	}
	const good = "| L3 | late | `drivertest:late-settle` | now |\n" +
		"| R15 | stop | `worker.TestStop`, `drivertest:history` | now |\n" +
		"| L5 | inside | `worker.TestInside` `worker.FuzzDecode` `ferry.ExamplePublish` `drivertest:expiry-once` | now |\n"
	tests := []struct{ name, table, broken string }{
		{"complete", good, ""},
		{"later", good + "| L6 | later | `kafka.TestLater` | kafka |\n", `status "kafka"`},
		{"missing test", good + "| L6 | x | `worker.TestGone` | now |\n", "L6: the test worker.TestGone does not exist"},
		{"missing case", good + "| L6 | x | `drivertest:gone` | now |\n", "L6: the test drivertest:gone does not exist"},
		{"a function that is no case", good + "| L6 | x | `drivertest:lateSettle` | now |\n",
			"drivertest:lateSettle does not exist"},
		{"nothing named", good + "| L6 | x | nothing | now |\n", "no test is named"},
		{"unknown status", good + "| L6 | x | | someday |\n", `status "someday"`},
		{"twice", good + "| L3 | late | `drivertest:late-settle` | now |\n", "L3 has two rows"},
		{"note without row", good[len("| L3 | late | `drivertest:late-settle` | now |\n"):],
			"drivertest:late-settle says that it is a test of L3"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			expect(t, checkLessons(parseLessons(test.table), indexTests(sources)), test.broken)
		})
	}
	stray := parse("b_test.go", []byte("package b\n// Lesson: L1\nvar x int\n"))
	expect(t, checkLessons(nil, indexTests([]Source{stray})), "b_test.go:2: this note stands at no test")
}
