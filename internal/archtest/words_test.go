package archtest

import "testing"

func TestWords(t *testing.T) {
	t.Parallel()
	sources, err := read()
	if err != nil {
		t.Fatal(err)
	}
	for _, retired := range Retired {
		seen := false
		for _, s := range sources {
			seen = seen || s.Package() == retired.Package
			report(t, checkWords(s, retired))
		}
		if !seen {
			t.Errorf("there is no package %s", retired.Package)
		}
	}
}

func TestWordsCanFail(t *testing.T) {
	t.Parallel()
	retired := Words{"driver/a", []string{"side"}}
	s := parse("driver/a/internal/b/b.go", []byte("package b\n\ntype sideLog struct{ logSide, aside int }\n\n"+
		"func (sideLog) Side(outside int) {\n\tvar side int\n\t_ = side\n}\n"))
	if broken := checkWords(s, retired); len(broken) != 3 {
		t.Errorf("of a type, a field and a variable: %q", broken)
	}
	s.Path = "driver/ab/b.go"
	if broken := checkWords(s, retired); len(broken) != 0 {
		t.Errorf("another package: %q", broken)
	}
}
