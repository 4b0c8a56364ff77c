package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/fleet"
)

// replayed returns the diagnosis of a recording of the repository.
func replayed(t testing.TB, name string) engine.Diagnosis {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "testdata", "recordings", name))
	must(t, err)
	defer file.Close()
	rec, err := session.OpenRecording(file)
	must(t, err)
	d, err := session.Replay(rec, "test")
	must(t, err)
	return d
}

// metrics returns the exporter's page without comments and its own process.
func metrics(t *testing.T, e *Exporter) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, l) }()
	response, err := http.Get("http://" + l.Addr().String() + "/metrics")
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "rooftop_") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func TestMetrics(t *testing.T) {
	e := New("1.2.3")
	slots := replayed(t, "slots4-cpu.gz")
	ill := fleet.Server{Name: "b:1"}
	ill.Outcome, ill.Condition = engine.OutcomeUnhealthy, engine.Condition{State: engine.Dead, Reason: "x"}
	ill.Measured = slots.Measured
	idle := fleet.Server{Name: "c:1"}
	idle.Outcome = engine.OutcomeNoLoad
	e.mu.Lock()
	e.servers, e.ended = []fleet.Server{{Name: "a:1", Diagnosis: slots}, ill, idle, fleet.Unread("d:1", "503")}, time.Unix(1_800_000_000, 0)
	e.mu.Unlock()
	page := metrics(t, e)
	for _, want := range []string{
		`rooftop_build_info{version="1.2.3"} 1`,
		`rooftop_diagnosis_timestamp_seconds 1.8e+09`,
		`rooftop_finding{finding="concurrency-saturation",server="a:1"} 1`,
		`rooftop_predicted_output_gain_ratio{bound="low",server="a:1"}`,
		`rooftop_recommended_change_info{finding="concurrency-saturation",flag="--max-num-seqs",from="4",kind="flag",server="a:1",to="32"} 1`,
		`rooftop_server_evaluable{server="a:1"} 1`,
		`rooftop_server_evaluable{server="b:1"} 0`,
		`rooftop_server_evaluable{server="c:1"} 0`,
		`rooftop_server_ill{server="b:1",state="dead"} 1`,
		`rooftop_server_readable{server="b:1"} 1`,
		`rooftop_server_readable{server="d:1"} 0`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	for _, none := range []string{`rooftop_output_tokens_per_second{server="b:1"}`, `rooftop_ceiling`, `rooftop_server_evaluable{server="d:1"}`, `NaN`, "rooftop_predicted_savings"} {
		if strings.Contains(page, none) {
			t.Errorf("%s in\n%s", none, page)
		}
	}
}

// A name is data: nothing in it reverses the text around it, or makes the page invalid.
func TestHostileNames(t *testing.T) {
	e := New("1")
	e.mu.Lock()
	for _, name := range []string{"a\u202eb", `a\u202eb`, "a\x1b[31m\nrooftop_server_readable 1", "a\u2066", `"} 1`} {
		e.servers = append(e.servers, fleet.Server{Name: name})
	}
	e.mu.Unlock()
	page := metrics(t, e)
	for _, want := range []string{`{server="a\\u202eb"} 1`, `{server="a\\\\u202eb"} 1`, `{server="a\\x1b[31m\\nrooftop_server_readable 1"} 1`, `{server="a\\u2066"} 1`, `{server="\"} 1"} 1`} {
		if !strings.Contains(page, "rooftop_server_readable"+want+"\n") {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
}

// After a failed diagnosis, or before the first one, no server looks healthy, and no known server vanishes.
func TestFailureLeavesServersUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New("1.2.3")
		ctx, cancel := context.WithCancel(t.Context())
		type answer struct {
			names string // of the servers; "" for nil
			err   error
		}
		answers := make(chan answer)
		var told []error
		go e.Run(ctx, func(context.Context) (list []fleet.Server, err error) {
			a := <-answers
			for _, name := range strings.Fields(a.names) {
				list = append(list, fleet.Server{Name: name})
			}
			return list, a.err
		}, time.Minute, func(err error) { told = append(told, err) })
		var ended time.Time
		failed := 0
		for _, step := range []struct {
			what string
			answer
			readable, unread string
		}{
			{"before the first", answer{}, "", ""},
			{"the first fails", answer{"", errors.New("1")}, "", ""},
			{"it fails again, and the source knows a server", answer{"a:1", errors.New("2")}, "", "a:1"},
			{"success", answer{"a:1 b:1", nil}, "a:1 b:1", ""},
			{"the source no longer knows a server", answer{"", errors.New("3")}, "", "a:1 b:1"},
			{"nor does it then", answer{"", errors.New("4")}, "", "a:1 b:1"},
			{"one server is left", answer{"b:1", nil}, "b:1", ""},
			{"none is left", answer{"", nil}, "", ""},
			{"and it fails", answer{"", errors.New("5")}, "", ""},
		} {
			if step.what != "before the first" {
				answers <- step.answer
				if step.err != nil {
					failed++
				} else {
					ended = time.Now()
				}
			}
			synctest.Wait()
			e.mu.Lock()
			var readable, unread []string
			for i := range e.servers {
				if s := &e.servers[i]; s.Unread == "" {
					readable = append(readable, s.Name)
				} else if unread = append(unread, s.Name); s.Unread != step.err.Error() {
					t.Errorf("%s: %s was not read because %q", step.what, s.Name, s.Unread)
				}
			}
			if got := strings.Join(readable, " "); got != step.readable || strings.Join(unread, " ") != step.unread {
				t.Errorf("%s: readable %q and unread %q, want %q and %q", step.what, got, unread, step.readable, step.unread)
			}
			if e.failed != float64(failed) || len(told) != failed || !e.ended.Equal(ended) {
				t.Errorf("%s: %v failures, told %v, ended %v, want %d and %v", step.what, e.failed, told, e.ended, failed, ended)
			}
			e.mu.Unlock()
		}
		cancel()
		synctest.Wait()
	})
}

// After a day of diagnoses of pods whose names change each hour, only the latest diagnosis remains.
func TestADayLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, began := New("1.2.3"), time.Now()
		d := replayed(t, "slots4-cpu.gz")
		ctx, cancel := context.WithCancel(t.Context())
		go e.Run(ctx, func(context.Context) ([]fleet.Server, error) {
			list := make([]fleet.Server, 20)
			for i := range list {
				list[i] = fleet.Server{Name: fmt.Sprintf("pod-%d-%d:8000", int(time.Since(began).Hours()), i), Diagnosis: d}
				list[i].Notes = []string{strings.Repeat("x", 10_000)} // what would add up to 300 MB
			}
			return list, nil
		}, time.Minute, nil)
		size := func() (series int, heap uint64) {
			synctest.Wait()
			families, err := e.registry.Gather()
			must(t, err)
			for _, f := range families {
				series += len(f.Metric)
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return series, m.HeapAlloc
		}
		time.Sleep(time.Hour)
		series, heap := size()
		time.Sleep(23 * time.Hour)
		if s, h := size(); s != series || h > heap+5<<20 {
			t.Errorf("%d series and %d bytes after an hour, %d and %d after a day", series, heap, s, h)
		}
		cancel()
		synctest.Wait()
	})
}

// must ends a test that got an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
