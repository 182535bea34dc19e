package notify

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzTemplate: whatever is read can be filled in, with all its variables and never without one; a value changes
// nothing around its place.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"", "{a}", "{{{a:.1%}}}", "{a:d}{b:.15f}", "{", "}", "{a:}", "{a b}", "队列 {topic} 积压"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseTemplate(text)
		if err != nil {
			return
		}
		values := map[string]any{}
		for _, name := range parsed.Variables() {
			if _, err := parsed.Execute(values); err == nil {
				t.Fatalf("%q is filled in without %q", text, name)
			}
			values[name] = 7
		}
		got, err := parsed.Execute(values)
		if err != nil {
			t.Fatal(err)
		}
		if len(values) == 0 && got != strings.NewReplacer("{{", "{", "}}", "}").Replace(text) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// FuzzSplit: parts have the bytes of the body in order, but for line breaks between them; none is too long, empty, or
// cut inside a rune.
func FuzzSplit(f *testing.F) {
	f.Add("一二三\n四五六", 7)
	f.Add("\n\n\n", 4)
	f.Add("aaaa\nb", 4)
	f.Fuzz(func(t *testing.T, body string, limit int) {
		if !utf8.ValidString(body) || limit < utf8.UTFMax || limit > 1<<16 {
			return
		}
		parts := split(body, limit)
		for _, p := range parts {
			if len(p) > limit || !utf8.ValidString(p) {
				t.Fatalf("part %q of %q, of at most %d bytes", p, body, limit)
			}
		}
		plain := func(s string) string { return strings.ReplaceAll(s, "\n", "") }
		if plain(strings.Join(parts, "")) != plain(body) {
			t.Fatalf("%q became %q", body, parts)
		}
	})
}

// FuzzLiteral: nothing in the text is a link, a tag or a mention, and nothing but zero-width spaces is new.
func FuzzLiteral(f *testing.F) {
	f.Add("[a](b) ![c](d) <at id=all></at> <@all> <!channel> a < b ]( <<a](](")
	f.Fuzz(func(t *testing.T, text string) {
		got := Literal(text)
		if active.MatchString(got) || strings.ReplaceAll(got, "\u200b", "") != strings.ReplaceAll(text, "\u200b", "") {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
