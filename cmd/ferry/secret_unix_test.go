//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secretFile writes a secret with a mode.
func secretFile(t *testing.T, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "url")
	if err := errors.Join(os.WriteFile(path, []byte("redis://:Canary7@h\n"), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func readVariable(path string) (string, error) {
	v, _, err := variable("FERRY_BROKER", func(name string) (string,
		bool) {
		return map[string]string{"FERRY_BROKER_FILE": path}[name], true
	})
	return v, err
}

func TestSecretFileMustBePrivate(t *testing.T) {
	t.Parallel()
	for mode, fine := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o440: true, 0o640: true, 0o644: false,
		0o444: false, 0o604: false, 0o620: false, 0o602: false} {
		v, err := readVariable(secretFile(t, mode))
		if fine && (err != nil || v != "redis://:Canary7@h") {
			t.Errorf("mode %o: %q, %v", mode, v, err)
		}
		var u *usageError
		if !fine && (v != "" || !errors.As(err, &u) || !strings.Contains(u.hint, "chmod 600") ||
			!strings.Contains(u.text, "FERRY_BROKER_FILE") || strings.Contains(u.text+u.hint, "Canary7")) {
			t.Errorf("mode %o: %q, %v", mode, v, err)
		}
	}
}

func TestSecretFileOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := secretFile(t, 0o600)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := readVariable(link); err != nil {
		t.Errorf("a link of our own: %v", err)
	}
	if err := os.Lchown(link, 4242, 4242); err != nil {
		t.Fatal(err)
	}
	if _, err := readVariable(link); err == nil || !strings.Contains(err.Error(), "link that belongs to another user") {
		t.Errorf("a planted link: %v", err)
	}
	if err := os.Chown(path, 4242, 4242); err != nil {
		t.Fatal(err)
	}
	if _, err := readVariable(path); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("a file of another user: %v", err)
	}
}
