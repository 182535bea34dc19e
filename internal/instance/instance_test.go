package instance_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/instance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNames: a process has one name, and each of its parts that asks for one of its own has another.
func TestNames(t *testing.T) {
	t.Parallel()
	process := instance.Process()
	if process != instance.Process() || !strings.HasSuffix(process, "-"+strconv.Itoa(os.Getpid())) {
		t.Errorf("the process is called %q", process)
	}
	if host := strings.TrimSuffix(process,
		"-"+strconv.Itoa(os.Getpid())); !strings.HasPrefix(instance.Host(), host) || host == "" {
		t.Errorf("the process is called %q on host %q", process, instance.Host())
	}
	a, b := instance.Unique(), instance.Unique()
	if a == b || !strings.HasPrefix(a, process+"-") || len(a) != len(process)+7 {
		t.Errorf("two of one process are called %q and %q", a, b)
	}
}
