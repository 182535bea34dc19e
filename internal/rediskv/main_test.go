package rediskv

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Main(m)) }
