package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/server/config"
)

// TestSkeleton: the program compiles, and the configuration is good, also with every key that is commented out.
func TestSkeleton(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(program, skeletonWorker, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("go", "vet", program)
	c.Dir = repository
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := config.Parse("ferry.yaml", skeletonConfig); err != nil {
		t.Error(err)
	}
	key := regexp.MustCompile(`(?m)^# (( *)[a-z_-]+:( .*)?)$`)
	all := key.ReplaceAllString(string(skeletonConfig), "$1")
	if _, err := config.Parse("ferry.yaml", []byte(all)); err != nil || strings.Count(all, "#") > 20 {
		t.Errorf("%v in\n%s", err, all)
	}
}
