package tracing

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// loads returns successive readings of other programs; the last one repeats.
type loads struct {
	answers []*optrace.HostLoad
	asked   int
}

func (l *loads) Load() *optrace.HostLoad {
	l.asked++
	return l.answers[min(l.asked, len(l.answers))-1]
}

// TestOtherProgramsAreRecorded checks that a trace's document and recording have the use of the CPUs
// as of its end.
func TestOtherProgramsAreRecorded(t *testing.T) {
	want := &optrace.HostLoad{
		Elapsed: time.Second, CPUs: 2, Target: 900 * time.Millisecond, Others: 980 * time.Millisecond,
	}
	d := newDecoder(time.Millisecond, 500)
	beside := 0
	d.load = func(pid int) (loadMeter, error) {
		beside = pid
		return &loads{answers: []*optrace.HostLoad{want}}, nil
	}
	file := filepath.Join(t.TempDir(), "run"+Suffix)
	live, errs, code := runTrace(t, d, "--save", file, "--json")
	if code != cli.ExitDone || beside != d.Target().PID {
		t.Fatalf("exit code %d, measured beside %d: %s", code, beside, errs)
	}
	again, _, _ := runTrace(t, nil, file, "--json")
	for name, text := range map[string]string{"the trace": live, "its recording": again} {
		var got struct {
			HostLoad *optrace.HostLoad `json:"host_load"`
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got.HostLoad, want) {
			t.Errorf("%s: %+v (%v), want %+v", name, got.HostLoad, err, want)
		}
	}
	d = newDecoder(time.Millisecond, 500)
	d.load = func(int) (loadMeter, error) { return nil, errors.New("no /proc") }
	if _, errs, code := runTrace(t, d); code != cli.ExitDone {
		t.Errorf("a trace does without: exit code %d: %s", code, errs)
	}
}

// TestOtherProgramsDuringATrace checks that processes are not read all the time, and that the
// last reading is kept after the target's end.
func TestOtherProgramsDuringATrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &optrace.HostLoad{Elapsed: time.Second}, &optrace.HostLoad{Elapsed: 6 * time.Second}
		l := &loads{answers: []*optrace.HostLoad{first, second, nil}}
		var o others
		if o.sample() != nil || o.final() != nil {
			t.Error("nothing was measured, and something is known")
		}
		o.begin(&Options{load: func(int) (loadMeter, error) { return l, nil }}, 42)
		if o.sample() != nil || l.asked != 0 {
			t.Errorf("looked at once, %d times", l.asked)
		}
		time.Sleep(loadFirst)
		for range 3 {
			if o.sample() != first || l.asked != 1 {
				t.Errorf("after a second: asked %d times", l.asked)
			}
		}
		time.Sleep(loadEvery)
		if o.sample() != second || o.final() != second || l.asked != 3 {
			t.Errorf("later: asked %d times, %+v", l.asked, o.newest)
		}
	})
}
