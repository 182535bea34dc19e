package bullmq

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// What is installed, pinned by package-lock.json, and the script. The lock names the native helper for one platform
// only; elsewhere its JavaScript does.
var (
	//go:embed package.json
	packages []byte
	//go:embed package-lock.json
	lock []byte
	//go:embed bench.mjs
	script []byte
)

// installTimeout bounds npm.
const installTimeout = 90 * time.Second

// version is the pinned version.
func version() string {
	var p struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if json.Unmarshal(packages, &p) != nil {
		return "unknown"
	}
	return p.Dependencies["bullmq"]
}

// installation is a directory with the packages, made once for all runs in the user's cache.
type installation struct {
	once sync.Once
	path string
	err  error
}

func (i *installation) dir() (string, error) {
	i.once.Do(func() { i.path, i.err = install() })
	return i.path, i.err
}

func install() (string, error) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("%s is not installed", tool)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(cache, "ferry-bench")
	dir := filepath.Join(parent, "bullmq-"+digest(packages, lock))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	draft, err := os.MkdirTemp(parent, "draft-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(draft) }()
	if err := fill(draft); err != nil {
		return "", err
	}
	if err := os.Rename(draft, dir); err != nil {
		if _, other := os.Stat(dir); other != nil { // nobody else was faster
			return "", err
		}
	}
	return dir, nil
}

func fill(dir string) error {
	for name, content := range map[string][]byte{"package.json": packages, "package-lock.json": lock} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm cannot install it (%w): %s", errors.Join(err, ctx.Err()),
			strings.Join(strings.Fields(fmt.Sprintf("%.300s", out)), " "))
	}
	return nil
}

func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = h.Write(p) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}
