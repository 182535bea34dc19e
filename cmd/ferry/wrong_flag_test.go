package main

import (
	"strings"
	"testing"
)

// What is wrong with a value is said in words, without those of the parser.
func TestAWrongValueOfAFlagIsToldInWords(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for line, want := range map[string]string{
		"pub orders x --batch many": `error: --batch "many" is not a whole number`,
		"topic create t --max-messages 99999999999999999999": `error: --max-messages "99999999999999999999" is not ` +
			"a whole number",
		"pub orders x --delay 5":        `error: --delay "5" is not a duration`,
		"topic rm orders --yes=perhaps": `error: --yes "perhaps" is not true or false`,
		"worker scale one -3":           "error: unknown flag: -3",
	} {
		r := d.fails(exitUsage, want+"\n", strings.Fields(line)...)
		d.hasNot(r.err, "strconv", "time:", "shorthand", "invalid argument")
	}
	d.has(d.fails(exitUsage, "", "worker", "scale", "one", "-3").err,
		"hint: an argument that begins with - stands behind --;")
	d.has(d.fails(exitUsage, "", "pub", "orders", "x", "--delay", "5").err, "hint: write it as 10s, 5m or 1h30m")
}

// No error tells Go names or values to those who typed a command, or says a thing twice.
func TestErrorsSpeakOfTheCommandLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("topic", "create", "there", "--max-messages", "5")
	d.ok("group", "create", "there", "g")
	for _, c := range []struct{ line, want string }{
		{"topic create orders --max-messages -1", "error: max messages -1 is negative\n"},
		{"topic create orders --keep -1h", "error: keep -1h0m0s is negative\n"},
		{"topic create there --max-messages 6",
			"error: topic \"there\" is configured as max messages 5, not max messages 6\n"},
		{"schedule show nope", "error: there is no schedule nope\nhint: 'ferry schedule ls' lists those that there are\n"},
		{"schedule next @daily --zone Mars/Olympus", "error: time zone \"Mars/Olympus\" is not known\n"},
		{"schedule next @every*x", "error: \"@every*x\" is not known\n"},
		{"pub orders x --delay 5s --at 2090-01-01T00:00:00Z", "hint: give a delay or a time, not both\n"},
		{"pub orders x --max-attempts -3", "hint: use 1 for no retry, 2147483647 for no end (Unlimited), or leave it out\n"},
		{"pub ferry.schedules x", "error: topic \"ferry.schedules\" is one of Ferry's own"},
		{"msg ls there --cursor nope", "error: cursor \"nope\" is not one of this listing\nhint: use the cursor that an " +
			"earlier page of the same query ended with, or none\n"},
		{"msg show there nope", "has no message \"nope\"\nhint: it was settled or removed; 'ferry topic alter --keep' has " +
			"a topic keep settled messages for a while\n"},
	} {
		r := d.run(strings.Fields(c.line)...)
		if r.code == exitOK || !strings.Contains(r.err, c.want) {
			t.Errorf("ferry %s: exit code %d, want %q:\n%s", c.line, r.code, c.want, r.err)
		}
	}
}
