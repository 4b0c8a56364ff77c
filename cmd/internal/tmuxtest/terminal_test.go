//go:build e2e

package tmuxtest

import (
	"strings"
	"testing"
	"time"
)

// The test checks the harness with known programs.
func TestE2ETerminal(t *testing.T) {
	x := Open(t, Options{Width: 60, Height: 12, Env: []string{"SPOKEN=as told"}})
	x.Type(`echo "$SPOKEN" $(tput cols) $(tput lines)`)
	x.Await("as told 60 12", 10*time.Second)
	x.Resize(90, 20)
	x.Type("tput cols")
	x.AwaitThat("the new width", 10*time.Second, func(s string) bool { return strings.Contains(s, "\n90\n") })
	if x.Alternate() || !x.Cursor() {
		t.Error("a shell has the normal screen and a cursor")
	}
	x.Type("tput smcup; tput civis; echo elsewhere; sleep 60")
	x.Await("elsewhere", 10*time.Second)
	if !x.Alternate() || x.Cursor() {
		t.Error("the alternate screen or the hidden cursor was not seen")
	}
	x.Press("C-c")
	x.Type("tput rmcup; tput cnorm")
	x.AwaitNormal(10 * time.Second)
	if !strings.Contains(x.History(), "as told") {
		t.Error("the history does not have the first answer")
	}
}
