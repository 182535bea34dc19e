package rig

import (
	"os/exec"
	"runtime"
	"testing"
)

// What a process took is its own, however much the one that started it has taken.
func TestMemoryIsOfTheProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no other system tells of the memory of a process in /proc")
	}
	ours := make([]byte, 3*muchMemory/2)
	for i := 0; i < len(ours); i += 4096 {
		ours[i] = 1
	}
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	stop := followMemory(child.Process.Pid)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	most := stop()
	if most == 0 || checkMemory(most) != nil {
		t.Errorf("it took %d bytes, and we have %d", most, len(ours))
	}
	runtime.KeepAlive(ours)
}

func TestPeak(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int64{
		"Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n": 2 << 20,
		"Name:\tx\nState:\tZ (zombie)\n":                                  0,
		"":                                                                0,
	} {
		if got := peak(status); got != want {
			t.Errorf("%q: %d, want %d", status, got, want)
		}
	}
	if checkMemory(muchMemory) != nil || checkMemory(muchMemory+1) == nil {
		t.Error("the bound does not hold")
	}
}
