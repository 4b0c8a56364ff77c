package tuning

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Every process is listed once, also if the parents that were read contradict each other.
func TestTree(t *testing.T) {
	p := func(pid, ppid int) loop.Process { return loop.Process{PID: pid, PPID: ppid} }
	for _, c := range []struct {
		list []loop.Process
		want string
	}{
		{[]loop.Process{p(12, 11), p(10, 1), p(11, 10), p(13, 11)}, "0:10 1:11 2:12 2:13"},
		{[]loop.Process{p(20, 1), p(10, 1), p(21, 20)}, "0:10 0:20 1:21"},
		{[]loop.Process{p(5, 5)}, "0:5"},
		{[]loop.Process{p(5, 6), p(6, 5)}, "0:5 1:6"},
	} {
		var got []string
		for _, b := range tree(c.list) {
			got = append(got, fmt.Sprintf("%d:%d", b.depth, b.PID))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
}
