package deadletter_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

// The examples of RFC 6902, appendix A, and the corners that the text of the RFC has.
func TestPatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, document, patch, want string }{ // want "" means that it does not apply
		{"A.1 add a member", `{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux"}]`, `{"baz":"qux","foo":"bar"}`},
		{"A.2 add an element", `{"foo":["bar","baz"]}`, `[{"op":"add","path":"/foo/1","value":"qux"}]`,
			`{"foo":["bar","qux","baz"]}`},
		{"A.3 remove a member", `{"baz":"qux","foo":"bar"}`, `[{"op":"remove","path":"/baz"}]`, `{"foo":"bar"}`},
		{"A.4 remove an element", `{"foo":["bar","qux","baz"]}`, `[{"op":"remove","path":"/foo/1"}]`,
			`{"foo":["bar","baz"]}`},
		{"A.5 replace", `{"baz":"qux","foo":"bar"}`, `[{"op":"replace","path":"/baz","value":"boo"}]`,
			`{"baz":"boo","foo":"bar"}`},
		{"A.6 move a value", `{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`,
			`[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]`,
			`{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`},
		{"A.7 move an element", `{"foo":["all","grass","cows","eat"]}`, `[{"op":"move","from":"/foo/1","path":"/foo/3"}]`,
			`{"foo":["all","cows","eat","grass"]}`},
		{"A.8 test", `{"baz":"qux","foo":["a",2,"c"]}`,
			`[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]`,
			`{"baz":"qux","foo":["a",2,"c"]}`},
		{"A.9 test fails", `{"baz":"qux"}`, `[{"op":"test","path":"/baz","value":"bar"}]`, ``},
		{"A.10 nested", `{"foo":"bar"}`, `[{"op":"add","path":"/child","value":{"grandchild":{}}}]`,
			`{"child":{"grandchild":{}},"foo":"bar"}`},
		{"A.11 unknown members are ignored", `{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux","xyz":123}]`,
			`{"baz":"qux","foo":"bar"}`},
		{"A.12 add to nothing", `{"foo":"bar"}`, `[{"op":"add","path":"/baz/bat","value":"qux"}]`, ``},
		{"A.14 escapes", `{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":10}]`, `{"/":9,"~1":10}`},
		{"A.15 text is no number", `{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":"10"}]`, ``},
		{"A.16 append", `{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":["abc","def"]}]`,
			`{"foo":["bar",["abc","def"]]}`},
		{"the whole document", `{"a":1}`, `[{"op":"replace","path":"","value":[1]}]`, `[1]`},
		{"null is a value", `{"a":1}`, `[{"op":"add","path":"/b","value":null}]`, `{"a":1,"b":null}`},
		{"large numbers stay", `{"id":12345678901234567890,"x":1}`, `[{"op":"remove","path":"/x"}]`,
			`{"id":12345678901234567890}`},
		{"numbers by value", `{"a":1.0}`, `[{"op":"test","path":"/a","value":1}]`, `{"a":1.0}`},
		{"behind the end", `[1]`, `[{"op":"add","path":"/2","value":1}]`, ``},
		{"at the end", `[1]`, `[{"op":"add","path":"/1","value":2}]`, `[1,2]`},
		{"replace nothing", `{}`, `[{"op":"replace","path":"/a","value":1}]`, ``},
		{"no leading zero", `[1,2]`, `[{"op":"remove","path":"/01"}]`, ``},
		{"dash is no element", `[1]`, `[{"op":"remove","path":"/-"}]`, ``},
		{"copy is a copy", `{"a":{"x":1}}`,
			`[{"op":"copy","from":"/a","path":"/b"},{"op":"replace","path":"/b/x","value":2}]`, `{"a":{"x":1},"b":{"x":2}}`},
		{"all or nothing", `{"a":1}`, `[{"op":"remove","path":"/a"},{"op":"remove","path":"/a"}]`, ``},
		{"into a text", `{"a":"x"}`, `[{"op":"add","path":"/a/0","value":1}]`, ``},
		{"not JSON", `oops`, `[]`, ``},
		{"html stays", `{"a":"<&>"}`, `[]`, `{"a":"<&>"}`},
	} {
		p, err := deadletter.ParsePatch([]byte(c.patch))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := p.Apply([]byte(c.document))
		switch {
		case c.want == "" && (err == nil || !errors.Is(err, driver.ErrInvalid)):
			t.Errorf("%s: %s, %v; want an error", c.name, got, err)
		case c.want != "" && string(got) != c.want:
			t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestABadPatchNamesTheOperation(t *testing.T) {
	t.Parallel()
	for patch, want := range map[string]string{
		`{}`:    "not a list of operations",
		`[] []`: "something follows",
		`[{"op":"add","path":"/a","value":1},{"op":"bogus","path":"/a"}]`: `operation 2: "bogus" is none of`,
		`[{"op":"remove"}]`:                         "operation 1: it has no path",
		`[{"op":"add","path":"/a"}]`:                "add has no value",
		`[{"op":"move","path":"/a"}]`:               "move has no from",
		`[{"op":"remove","path":"a"}]`:              "does not begin with /",
		`[{"op":"remove","path":"/a~2"}]`:           "neither ~0 nor ~1",
		`[{"op":"move","from":"/a","path":"/a/b"}]`: "into itself",
		"[" + strings.Repeat(`{"op":"remove","path":"/a"},`, 1000) + `{"op":"remove","path":"/a"}]`: "too many",
	} {
		if _, err := deadletter.ParsePatch([]byte(patch)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v; want %q", patch, err, want)
		}
	}
}

// Copies of copies double a document: they end with an error, not with the memory.
func TestAPatchCannotExplode(t *testing.T) {
	t.Parallel()
	steps := make([]string, 40)
	for i := range steps {
		steps[i] = fmt.Sprintf(`{"op":"copy","from":"","path":"/c%d"}`, i)
	}
	p, err := deadletter.ParsePatch([]byte("[" + strings.Join(steps, ",") + "]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply([]byte(`{"a":"` + strings.Repeat("x", 1000) + `"}`)); err == nil ||
		!strings.Contains(err.Error(), "too large") {
		t.Errorf("%v", err)
	}
}

// An add is undone by a remove of the same path, in any document.
func TestRemoveUndoesAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document := map[string]any{"list": []any{}, "object": map[string]any{}}
		for i := range rapid.IntRange(0, 5).Draw(t, "n") {
			document["list"] = append(document["list"].([]any), float64(i))
		}
		text, _ := json.Marshal(document)
		path := rapid.SampledFrom([]string{"/new", "/object/a~1b", "/list/0", "/object/~0"}).Draw(t, "path")
		p, err := deadletter.ParsePatch(
			fmt.Appendf(nil, `[{"op":"add","path":%q,"value":{"x":[1]}},`+
				`{"op":"test","path":%q,"value":{"x":[1]}},{"op":"remove","path":%q}]`, path, path, path))
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Apply(text)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(out, &got); err != nil || !reflect.DeepEqual(got, document) {
			t.Fatalf("%s became %s", text, out)
		}
	})
}

func FuzzPatch(f *testing.F) {
	f.Add([]byte(`{"a":[1,2]}`), []byte(`[{"op":"move","from":"/a/0","path":"/b"}]`))
	f.Fuzz(func(t *testing.T, document, patch []byte) {
		p, err := deadletter.ParsePatch(patch)
		if err != nil {
			return
		}
		if out, err := p.Apply(document); err == nil && !json.Valid(out) {
			t.Errorf("%q is not JSON", out)
		}
	})
}
