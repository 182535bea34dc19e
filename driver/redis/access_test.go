package redis_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/internal/redistest"
)

// The whole suite passes as the user that docs/redis.md recommends, who may do nothing else.
func TestDriverWithLeastPrivilege(t *testing.T) {
	text, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	recipe := regexp.MustCompile(`(?m)^ACL SETUSER (.*)$`).FindStringSubmatch(string(text))
	if recipe == nil {
		t.Fatal("docs/redis.md has no line that begins with ACL SETUSER")
	}
	line := "user " + strings.NewReplacer("{ferry", "{t", "PASSWORD", "secret").Replace(recipe[1])
	s := redistest.Single(t, redistest.Options{ACL: []string{line}})
	h := harness(s.URLAs("ferry", "secret"), capabilities(driver.InMemory, driver.InMemory))
	h.Steps = 1000
	drivertest.Run(t, h)
}

// The whole suite passes when topics are spread over several hash slots.
func TestDriverWithShards(t *testing.T) {
	h := harness(redistest.Shared(t).URL(), capabilities(driver.InMemory, driver.InMemory))
	h.Open = func(t testing.TB) driver.Driver { return openSharded(t, redistest.Shared(t).URL(), namespace(), 3) }
	h.Steps = 1000
	drivertest.Run(t, h)
}
