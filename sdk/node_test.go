package sdk_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// node is the path of Node.js, with the TypeScript SDK compiled by it, once.
var node = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("../scripts/node.sh").Output()
	if err != nil {
		return "", err
	}
	path := strings.TrimSpace(string(out))
	steps := [][]string{{path, "node_modules/typescript/bin/tsc"}}
	if !installed() {
		npm := filepath.Join(filepath.Dir(path), "npm")
		steps = slices.Insert(steps, 0, []string{"../../scripts/retry.sh", npm, "ci", "--no-audit", "--no-fund",
			"--ignore-scripts"})
	}
	for _, args := range steps {
		c := exec.Command(args[0], args[1:]...)
		c.Dir = "typescript"
		c.Env = append(os.Environ(), "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH")) // npm looks for node there
		if out, err := c.CombinedOutput(); err != nil {
			return "", &exec.Error{Name: strings.Join(args, " ") + ": " + string(out), Err: err}
		}
	}
	return path, nil
})

// installed reports whether the compiler is there, as the lock file wants it.
func installed() bool {
	has, err := os.Stat("typescript/node_modules/.package-lock.json")
	wants, err2 := os.Stat("typescript/package-lock.json")
	return err == nil && err2 == nil && has.ModTime().After(wants.ModTime())
}

// compiled returns the path of Node.js, when what it runs is there.
func compiled(t *testing.T) string {
	t.Helper()
	path, err := node()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
