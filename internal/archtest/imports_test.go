package archtest

import (
	"slices"
	"strings"
	"testing"
)

const root = "../.." // the repository, seen from this package

func report(t *testing.T, broken []string) {
	t.Helper()
	for _, b := range broken {
		t.Error(b)
	}
}

func TestImportRules(t *testing.T) {
	t.Parallel()
	packages, err := list(root, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 3 {
		t.Fatalf("go list found only %d packages: the test looks in the wrong place", len(packages))
	}
	report(t, checkImports(packages, Layers))
	for _, p := range packages {
		if slices.Contains(badNames, p.Name) {
			t.Errorf("%s: the package name %q does not say what it is for", p.ImportPath, p.Name)
		}
	}
}

func TestLightPackagesLinkNoBackend(t *testing.T) {
	t.Parallel()
	for _, light := range Light {
		for _, name := range light.Packages {
			path := full(name)
			packages, err := list(root, "-deps", path)
			if err != nil {
				t.Fatal(err)
			}
			if len(packages) == 0 || packages[len(packages)-1].Dir == "" {
				t.Errorf("%s does not exist: the rule guards nothing", path)
			}
			report(t, checkLinks(path, packages, light.Links))
		}
	}
}

func TestImportRulesCanFail(t *testing.T) {
	t.Parallel()
	pkg := func(name string, imports ...string) Package {
		return Package{ImportPath: full(name), Imports: fullAll(imports)}
	}
	tests := []struct {
		name   string
		pkg    Package
		broken string // part of the only complaint; empty: none
	}{
		{"the seam imports nothing of ours", pkg("driver", "codec"), "driver imports codec"},
		{"the seam may use the standard library",
			Package{ImportPath: full("driver"), Imports: []string{"time", "context"}}, ""},
		{"root and seam", pkg(".", "driver", "codec", "internal/uuid7"), ""},
		{"root and a driver", pkg(".", "driver/memory"), ". imports driver/memory"},
		{"root and the runtime", pkg(".", "worker"), ". imports worker"},
		{"codec and root", pkg("codec", "."), "codec imports ."},
		{"a codec and the codec interface", pkg("codec/avro", "codec"), ""},
		{"driver and root", pkg("driver/kafka", ".", "driver", "internal/envelope"), ""},
		{"driver and driver", pkg("driver/redisstream", "driver/redis"), "driver/redisstream imports driver/redis"},
		{"driver above the seam", pkg("driver/disk", "worker"), "driver/disk imports worker"},
		{"driver and conformance suite", pkg("driver/disk", "driver/drivertest"), "driver/disk imports driver/drivertest"},
		{"driver tests and conformance suite",
			Package{ImportPath: full("driver/disk"), TestImports: fullAll([]string{"driver/drivertest", "worker"})}, ""},
		{"conformance suite and memory", pkg("driver/drivertest", "driver/memory"),
			"driver/drivertest imports driver/memory"},
		{"conformance suite's tests and memory",
			Package{ImportPath: full("driver/drivertest"),
				XTestImports: fullAll([]string{"driver/drivertest", "driver/memory"})}, ""},
		{"conformance suite's tests and redis",
			Package{ImportPath: full("driver/drivertest"), TestImports: fullAll([]string{"driver/redis"})},
			"driver/drivertest imports driver/redis in its tests"},
		{"worker and driver", pkg("worker", "driver/memory"), "worker imports driver/memory"},
		{"worker's tests and driver", Package{ImportPath: full("worker"),
			XTestImports: fullAll([]string{"worker", "driver/memory"})}, ""},
		{"engine and root", pkg("internal/engine", "."), "internal/engine imports ."},
		{"console and admin", pkg("console", "admin"), "console imports admin"},
		{"open and all drivers", pkg("open", ".", "driver/memory", "driver/kafka"), ""},
		{"open and worker", pkg("open", "worker"), "open imports worker"},
		{"guard and redis", pkg("guard", "driver/redis"), "guard imports driver/redis"},
		{"command and everything", pkg("cmd/ferry", ".", "worker", "open", "console", "cmd/ferry/internal/top"), ""},
		{"test and command", Package{ImportPath: full("worker"), TestImports: fullAll([]string{"cmd/ferry"})},
			"nothing imports a command"},
		{"unknown package", pkg("queue"), "queue is in no row"},
		{"not ours", Package{ImportPath: "example.com/x", Imports: fullAll([]string{"worker"})}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			expect(t, checkImports([]Package{test.pkg}, Layers), test.broken)
		})
	}
}

func TestLinkRuleShowsTheChain(t *testing.T) {
	t.Parallel()
	module := func(path string) *struct{ Path, Dir string } { return &struct{ Path, Dir string }{Path: path} }
	packages := []Package{
		{ImportPath: full("driver/memory"), Module: module(Module),
			Imports: []string{"time", full("internal/engine"), full("driver")}},
		{ImportPath: full("internal/engine"), Module: module(Module), Imports: []string{"example.com/heap", full("driver")}},
		{ImportPath: full("driver"), Module: module(Module), Imports: []string{"example.com/redis/pool"}},
		{ImportPath: "example.com/redis/pool", Module: module("example.com/redis"),
			Imports: []string{"example.com/redis/inner"}},
		{ImportPath: "example.com/redis/inner", Module: module("example.com/redis")},
		{ImportPath: "example.com/heap", Module: module("example.com/heap")},
		{ImportPath: "time", Standard: true},
	}
	expect(t, checkLinks(full("driver/memory"), packages, []string{"example.com/heap"}),
		"links the module example.com/redis: "+full("driver/memory")+" -> "+full("driver")+" -> example.com/redis/pool")
	expect(t, checkLinks(full("driver/memory"), packages, []string{"example.com/heap", "example.com/redis/pool"}), "")
}

// expect checks that there is exactly one complaint and that it contains part, or none when part is empty.
func expect(t *testing.T, broken []string, part string) {
	t.Helper()
	switch {
	case part == "" && len(broken) > 0:
		t.Errorf("complained without reason: %q", broken)
	case part != "" && (len(broken) != 1 || !strings.Contains(broken[0], part)):
		t.Errorf("got complaints %q, want one with %q", broken, part)
	}
}

func full(name string) string { return strings.TrimSuffix(Module+"/"+name, "/.") }

func fullAll(names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = full(name)
	}
	return paths
}
