package avro_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/ferrymq/ferry/codec/avro"
	"github.com/ferrymq/ferry/codec/registry"
)

// old and fresh are what programs of two versions have of a record.
type (
	old   map[string]any
	fresh map[string]any
)

func record(fields string) string {
	return `{"type":"record","name":"Order","namespace":"shop","fields":[` + fields + `]}`
}

const id = `{"name":"id","type":"int"}`

// evolutions are pairs of schemas. A value that one wrote is read by the other, or the field that prevents it is named.
var evolutions = map[string]struct {
	older, newer string
	wrote        old // by the older
	reads        fresh
	noBackward   string // the field that keeps the newer from reading it
	writes       fresh  // by the newer
	read         old
	noForward    string
}{
	"added with a default": {
		older: record(id), newer: record(id + `,{"name":"note","type":"string","default":"none"}`),
		wrote: old{"id": 1}, reads: fresh{"id": int32(1), "note": "none"},
		writes: fresh{"id": 2, "note": "new"}, read: old{"id": int32(2)},
	},
	"added without a default": {
		older: record(id), newer: record(id + `,{"name":"note","type":"string"}`),
		wrote: old{"id": 1}, noBackward: "note",
		writes: fresh{"id": 2, "note": "new"}, read: old{"id": int32(2)},
	},
	"removed": {
		older: record(id + `,{"name":"note","type":"string"}`), newer: record(id),
		wrote: old{"id": 1, "note": "old"}, reads: fresh{"id": int32(1)},
		writes: fresh{"id": 2}, noForward: "note",
	},
	"removed with a default": {
		older: record(id + `,{"name":"note","type":["null","string"],"default":null}`), newer: record(id),
		wrote: old{"id": 1, "note": "old"}, reads: fresh{"id": int32(1)},
		writes: fresh{"id": 2}, read: old{"id": int32(2), "note": nil},
	},
	"renamed by an alias": {
		older: record(`{"name":"total","type":"int"}`), newer: record(`{"name":"sum","type":"int","aliases":["total"]}`),
		wrote: old{"total": 1}, reads: fresh{"sum": int32(1)},
		writes: fresh{"sum": 2}, noForward: "total",
	},
	"renamed without an alias": {
		older: record(`{"name":"total","type":"int"}`), newer: record(`{"name":"sum","type":"int"}`),
		wrote: old{"total": 1}, noBackward: "sum",
		writes: fresh{"sum": 2}, noForward: "total",
	},
	"record renamed by an alias": {
		older: record(id), newer: `{"type":"record","name":"Purchase","namespace":"shop","aliases":["Order"],"fields":[` +
			id + `]}`,
		wrote: old{"id": 1}, reads: fresh{"id": int32(1)},
		writes: fresh{"id": 2}, noForward: "(root)",
	},
	"int became long": {
		older: record(`{"name":"sum","type":"int"}`), newer: record(`{"name":"sum","type":"long"}`),
		wrote: old{"sum": 1}, reads: fresh{"sum": int64(1)},
		writes: fresh{"sum": 2}, noForward: "sum",
	},
	"long became double": {
		older: record(`{"name":"sum","type":"long"}`), newer: record(`{"name":"sum","type":"double"}`),
		wrote: old{"sum": 1}, reads: fresh{"sum": float64(1)},
		writes: fresh{"sum": 2.5}, noForward: "sum",
	},
	"string became bytes": {
		older: record(`{"name":"raw","type":"string"}`), newer: record(`{"name":"raw","type":"bytes"}`),
		wrote: old{"raw": "x"}, reads: fresh{"raw": []byte("x")},
		writes: fresh{"raw": []byte("y")}, read: old{"raw": "y"},
	},
	"string became int": {
		older: record(`{"name":"sum","type":"string"}`), newer: record(`{"name":"sum","type":"int"}`),
		wrote: old{"sum": "1"}, noBackward: "sum",
		writes: fresh{"sum": 2}, noForward: "sum",
	},
	"may be null": {
		older: record(`{"name":"note","type":"string"}`), newer: record(`{"name":"note","type":["null","string"]}`),
		wrote: old{"note": "x"}, reads: fresh{"note": "x"},
		writes: fresh{"note": nil}, noForward: "note",
	},
	"enum grew": {
		older: record(`{"name":"colour","type":{"type":"enum","name":"Colour","symbols":["RED"]}}`),
		newer: record(`{"name":"colour","type":{"type":"enum","name":"Colour","symbols":["RED","BLUE"]}}`),
		wrote: old{"colour": "RED"}, reads: fresh{"colour": "RED"},
		writes: fresh{"colour": "BLUE"}, noForward: "colour",
	},
	"enum grew, with a default": {
		older: record(`{"name":"colour","type":{"type":"enum","name":"Colour","symbols":["OTHER","RED"],"default":"OTHER"}}`),
		newer: record(`{"name":"colour","type":{"type":"enum","name":"Colour",` +
			`"symbols":["OTHER","RED","BLUE"],"default":"OTHER"}}`),
		wrote: old{"colour": "RED"}, reads: fresh{"colour": "RED"},
		writes: fresh{"colour": "BLUE"}, read: old{"colour": "OTHER"},
	},
	"deep inside": {
		older: record(`{"name":"home","type":{"type":"record","name":"Home","fields":[{"name":"city","type":"string"}]}}`),
		newer: record(`{"name":"home","type":{"type":"record","name":"Home","fields":[` +
			`{"name":"city","type":"string"},{"name":"zip","type":"string"}]}}`),
		wrote: old{"home": map[string]any{"city": "Rome"}}, noBackward: "home.zip",
		writes: fresh{"home": map[string]any{"city": "Oslo", "zip": "1"}}, read: old{"home": map[string]any{"city": "Oslo"}},
	},
}

func TestEvolution(t *testing.T) {
	t.Parallel()
	for name, e := range evolutions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, srfake.WithGlobalCompat(sr.CompatNone))
			before, after := newCodec(t, f, avro.Of[old](e.older)), newCodec(t, f, avro.Of[fresh](e.newer))
			evolve(t, registry.Backward, e.older, e.newer, e.noBackward, func() (any, any, error) {
				var got fresh
				data, err := before.Marshal(t.Context(), "orders", e.wrote)
				if err != nil {
					t.Fatal(err)
				}
				err = after.Unmarshal(t.Context(), "orders", data, &got)
				return got, e.reads, err
			})
			evolve(t, registry.Forward, e.older, e.newer, e.noForward, func() (any, any, error) {
				var got old
				data, err := after.Marshal(t.Context(), "orders", e.writes)
				if err != nil {
					t.Fatal(err)
				}
				err = before.Unmarshal(t.Context(), "orders", data, &got)
				return got, e.read, err
			})
			full := avro.Compatible(registry.Full, e.older, e.newer)
			if (full == nil) != (e.noBackward == "" && e.noForward == "") {
				t.Errorf("full: error %v", full)
			}
		})
	}
}

// evolve compares the verdict on two schemas with what a codec makes of a value.
func evolve(t *testing.T, level registry.Level, older, newer, field string, try func() (got, want any, err error)) {
	t.Helper()
	verdict := avro.Compatible(level, older, newer)
	got, want, err := try()
	if field == "" {
		if verdict != nil || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: verdict %v; got %#v, error %v, want %#v", level, verdict, got, err, want)
		}
		return
	}
	for _, err := range []error{verdict, err} {
		var i *avro.IncompatibleError
		if !errors.As(err, &i) || i.Field != field || !errors.Is(err, registry.ErrIncompatible) ||
			!strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v, want one that names %s", level, err, field)
		}
	}
}

// Check looks at the newest version, or at all of them, as the level of the subject says, and names version and field.
func TestCheck(t *testing.T) {
	t.Parallel()
	v1, v2 := record(`{"name":"sum","type":"string"}`), record(id)
	v3 := record(id + `,{"name":"sum","type":"int","default":0}`) // follows the second, not the first
	for level, wrong := range map[sr.CompatibilityLevel]string{
		sr.CompatNone: "", sr.CompatBackward: "", sr.CompatForward: "", sr.CompatFull: "",
		sr.CompatBackwardTransitive: "version 1", sr.CompatForwardTransitive: "version 1",
		sr.CompatFullTransitive: "version 1",
	} {
		f := newFake(t, srfake.WithGlobalCompat(level))
		f.SeedSchema("orders-value", 1, 1, sr.Schema{Schema: v1})
		f.SeedSchema("orders-value", 2, 2, sr.Schema{Schema: v2})
		c := newCodec(t, f, avro.Of[fresh](v3))
		err := c.Check(t.Context(), "orders", fresh{})
		switch {
		case wrong == "" && err != nil:
			t.Errorf("%v: error %v", level, err)
		case wrong != "" && (!errors.Is(err, registry.ErrIncompatible) || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%v: error %v, want %s", level, err, wrong)
		}
		if err := c.Check(t.Context(), "letters", fresh{}); err != nil {
			t.Errorf("%v, a subject without a history: %v", level, err)
		}
		if f.SubjectExists("letters-value") {
			t.Error("a check registered something")
		}
	}
}

// What the rules here allow the registry may still refuse.
func TestCheckAsksTheRegistryToo(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.SeedSchema("orders-value", 1, 1, sr.Schema{Schema: record(id)})
	f.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/compatibility/") {
			return false
		}
		_, _ = w.Write([]byte(`{"is_compatible":false,"messages":["a rule of our own"]}`))
		return true
	})
	err := newCodec(t, f, avro.Of[fresh](record(id))).Check(t.Context(), "orders", fresh{})
	if !errors.Is(err, registry.ErrIncompatible) || !strings.Contains(err.Error(), "a rule of our own") {
		t.Errorf("error %v", err)
	}
}

func TestCompatibleSaysWhatIsNoSchema(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		avro.Compatible(registry.Full, "{", record(id)), avro.Compatible(registry.Full, record(id), "{"),
		avro.Compatible("SOMETIMES", record(id), record(id)),
	} {
		if err == nil || errors.Is(err, registry.ErrIncompatible) {
			t.Errorf("error %v", err)
		}
	}
}
