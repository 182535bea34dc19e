package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// version says where one server is and what its configuration file knows.
type version struct {
	name string
	// file is below the repository's cache; empty: the system's redis-server.
	file string
	// debugOption is whether DEBUG must be switched on: servers before 7.0 refuse to start with that line.
	debugOption bool
}

const systemVersion = "redis-7.0"

var versions = []version{
	{name: "redis-6.2", file: "redis-6.2/redis-server"},
	{name: systemVersion, debugOption: true},
	{name: "valkey-9", file: "valkey-9/valkey-server", debugOption: true},
}

// Versions names the servers that tests can start: the oldest supported, the usual and the newest.
func Versions() []string {
	names := make([]string, len(versions))
	for i, v := range versions {
		names[i] = v.name
	}
	return names
}

// findVersion returns the version of that name and the path of its program.
func findVersion(name string) (version, string, error) {
	if name == "" {
		name = systemVersion
	}
	for _, v := range versions {
		if v.name != name {
			continue
		}
		binary, err := v.find()
		return v, binary, err
	}
	return version{}, "", fmt.Errorf("no server %q: Options.Version is one of %v", name, Versions())
}

// find returns the path of the program, or an error that says how to get it.
func (v version) find() (string, error) {
	binary, err := v.locate()
	if err != nil {
		return "", fmt.Errorf("the server %s is not installed, run `make setup`: %w", v.name, err)
	}
	return binary, nil
}

func (v version) locate() (string, error) {
	if v.file == "" {
		if found, err := exec.LookPath("redis-server"); err == nil {
			return found, nil
		}
		return exec.LookPath("/usr/bin/redis-server") // a PATH may lack it
	}
	root, err := repository()
	if err != nil {
		return "", err
	}
	return exec.LookPath(filepath.Join(root, ".cache", "servers", filepath.FromSlash(v.file)))
}

// repository walks up to the directory of scripts/servers.sh: the first go.mod may be that of a nested module.
func repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "servers.sh")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no scripts/servers.sh in or above %s", start)
		}
	}
}
