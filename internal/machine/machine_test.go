package machine_test

import (
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/machine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProcessorTimeIsCounted(t *testing.T) {
	before := machine.Read()
	if before.Resident < 1<<20 || before.Processors != runtime.GOMAXPROCS(0) {
		t.Errorf("%+v: want the memory and the processors of this process", before)
	}
	if runtime.GOOS != "linux" {
		t.Skip("only the memory is known here")
	}
	if before.HostUsed <= 0 || before.HostMemory < before.HostUsed || before.Total < before.Busy || before.Busy <= 0 {
		t.Errorf("%+v: want what the host uses", before)
	}
	now := before
	for now.Process-before.Process < 30*time.Millisecond { // busy until it shows
		now = machine.Read()
	}
	if cpu := now.ProcessCPU(before); cpu <= 0 || cpu > 1 {
		t.Errorf("the process used %v of its processors", cpu)
	}
	if cpu := now.HostCPU(before); cpu < 0 || cpu > 1 {
		t.Errorf("the host used %v of its processors", cpu)
	}
	if cpu := before.ProcessCPU(now); cpu != 0 {
		t.Errorf("%v backwards, want nothing", cpu)
	}
}
