package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(p process) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the commit it was built from, and the Go version",
		Example: "  ferry version",
		Args:    asUsed,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.out, buildVersion())
			return err
		},
	}
}

func buildVersion() string {
	info, _ := debug.ReadBuildInfo()
	return describe(info)
}

// describe returns the version in one line. Info is nil in a binary built without modules.
func describe(info *debug.BuildInfo) string {
	version, commit, modified := "(devel)", "", ""
	if info != nil {
		version = cmp.Or(info.Main.Version, version)
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = " commit " + s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = " modified"
			}
		}
	}
	return fmt.Sprintf("ferry %s%s%s %s %s/%s", version, commit, modified, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
