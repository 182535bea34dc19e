package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLicences compares the modules that the ferry command, the codecs and telemetry link with the table, both ways.
func TestLicences(t *testing.T) {
	t.Parallel()
	packages, err := list(root, "-deps", "./cmd/ferry", "./codec/...", "./telemetry/...")
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for _, p := range packages {
		if p.Module == nil || p.Module.Path == Module || linked[p.Module.Path] {
			continue
		}
		linked[p.Module.Path] = true
		got, err := licenceIn(p.Module.Dir)
		if want := Licences[p.Module.Path]; err != nil || got != want || !slices.Contains(permitted, got) {
			t.Errorf("%s is under %q, the table says %q (%v)", p.Module.Path, got, want, err)
		}
	}
	if len(linked) < 10 {
		t.Errorf("only %d modules: the test looks in the wrong place", len(linked))
	}
	for path := range Licences {
		if !linked[path] {
			t.Errorf("%s is in the table, and not linked any more", path)
		}
	}
}

func TestLicencesCanFail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004":                                                      "Apache-2.0",
		"Permission is hereby granted,\nfree of charge, to any person":                                      "MIT",
		"Redistribution and use in source and binary forms ... to endorse or promote products derived from": "BSD-3-Clause",
		"Redistribution and use in source and binary forms, with or without modification, are permitted":    "BSD-2-Clause",
		"GNU GENERAL PUBLIC LICENSE Version 3":                                                              "",
		"Redis Source Available License 2.0":                                                                "",
	} {
		if got := licenceOf(text); got != want {
			t.Errorf("%q is taken for %q, want %q", text, got, want)
		}
	}
	dir := t.TempDir()
	if _, err := licenceIn(dir); err == nil {
		t.Error("a module without a licence passed")
	}
	if err := os.WriteFile(filepath.Join(dir, "License"), []byte("all rights reserved"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := licenceIn(dir); got != "" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
