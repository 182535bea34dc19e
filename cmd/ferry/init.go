package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// The files of a new project.
var (
	//go:embed skeleton/ferry.yaml
	skeletonConfig []byte
	//go:embed skeleton/compose.yaml
	skeletonCompose []byte
	//go:embed skeleton/worker.go.txt
	skeletonWorker []byte
)

const initLong = `Writes three files to begin a project with: ferry.yaml, the configuration of a server with every key
explained; compose.yaml, a Redis that is set up as a broker should be; and worker/main.go, a program that publishes
and handles messages. A file that exists is not touched, and nothing is written then.`

func newInit(p process) *cobra.Command {
	return &cobra.Command{Use: "init [DIR]", Short: "Write the files that a new project begins with", Long: initLong,
		Example: "  ferry init\n  ferry init shop", Args: asUsed,
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return p.initialize(dir)
		}}
}

// initialize writes the files into a directory, all or none.
func (p process) initialize(dir string) error {
	files := [...]struct {
		name string
		text []byte
	}{
		{"ferry.yaml", skeletonConfig}, {"compose.yaml", skeletonCompose},
		{filepath.Join("worker", "main.go"), skeletonWorker},
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.name)); !errors.Is(err, fs.ErrNotExist) {
			return usage(fmt.Sprintf("%s is there already", filepath.Join(dir, f.name)),
				"choose another directory: ferry init DIR")
		}
	}
	for _, f := range files {
		name := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // a project is no secret
			return err
		}
		if err := os.WriteFile(name, f.text, 0o644); err != nil { //nolint:gosec // as above
			return err
		}
		if err := p.sayf("wrote %s", name); err != nil {
			return err
		}
	}
	return p.sayf("next: docker compose up -d, go run ./worker, ferry serve --config ferry.yaml")
}
