package redistest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestServersEndWithTheirTest(t *testing.T) {
	t.Parallel()
	var pids []int
	var dir string
	t.Run("inner", func(t *testing.T) {
		s := Single(t, Options{})
		frozen := Single(t, Options{})
		if err := frozen.Stop(); err != nil {
			t.Fatal(err)
		}
		pids, dir = []int{s.PID(), frozen.PID()}, s.spec.dir
	})
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d lives after its test", pid)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("its directory is left: %v", err)
	}
}

// abandonVariable makes the test binary a process that starts a server and is then killed. Its value is a directory.
const abandonVariable = "REDISTEST_ABANDON"

// abandon starts a server in a goroutine that ends, prints its number, and waits to be killed.
func abandon() {
	started := make(chan string)
	go func() {
		s, err := StartSingle(os.Getenv(abandonVariable), Options{})
		if err != nil {
			started <- err.Error()
			return
		}
		started <- strconv.Itoa(s.PID())
	}()
	fmt.Println(<-started)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // never comes
	os.Exit(1)
}

func TestServersEndWithAKilledProcess(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), abandonVariable+"="+t.TempDir())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Errorf("the other process printed %q", line)
	} else if !alive(pid) {
		t.Error("the server did not outlive the goroutine that started it")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := until(ctx, func() error {
		if alive(pid) {
			return fmt.Errorf("server %d lives", pid)
		}
		return nil
	}); err != nil {
		t.Error(err)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// alive tells whether a process runs; one that ended and that nobody has awaited does not.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}
