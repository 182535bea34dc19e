package admin

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/monitor"
)

// The API names every code that a verdict can have, so that whoever translates them cannot forget one.
func TestCodesOfHealth(t *testing.T) {
	t.Parallel()
	field, _ := reflect.TypeFor[api.HealthReason]().FieldByName("Code")
	named := strings.Split(field.Tag.Get("enum"), ",")
	codes := []monitor.Code{
		monitor.CodeUnreachable, monitor.CodeMemory, monitor.CodeNoTopic, monitor.CodeBound, monitor.CodeInvalid,
		monitor.CodeDead, monitor.CodeNoConsumer, monitor.CodeOld, monitor.CodeGrowing, monitor.CodeReconnecting,
		monitor.CodeFailing, monitor.CodeZombies, monitor.Code(monitor.Overdue), monitor.Code(monitor.Unexpired),
		monitor.Code(monitor.Stalled), monitor.Code(monitor.LongRunning), codeNotPulled,
	}
	for _, code := range codes {
		if !slices.Contains(named, string(code)) {
			t.Errorf("the API does not name %s", code)
		}
	}
	if len(named) != len(codes) {
		t.Errorf("the API names %d codes, there are %d", len(named), len(codes))
	}
}
