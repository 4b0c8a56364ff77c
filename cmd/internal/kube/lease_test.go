package kube

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// leases is an API server with one lease.
type leases struct {
	have    *leased
	version int
	faster  string // takes it before the next write
}

func (s *leases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fail := func(code int, reason string) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `","code":` + strconv.Itoa(code) + `}`))
	}
	var got leased
	_ = json.NewDecoder(r.Body).Decode(&got)
	if s.faster != "" && r.Method != http.MethodGet {
		s.hold(s.faster, 60, 0)
		s.faster = ""
	}
	switch {
	case r.Method == http.MethodPost && s.have != nil:
		fail(http.StatusConflict, "AlreadyExists")
		return
	case r.Method == http.MethodPut && (s.have == nil || got.Metadata.ResourceVersion != s.have.Metadata.ResourceVersion):
		fail(http.StatusConflict, "Conflict")
		return
	case r.Method == http.MethodPost, r.Method == http.MethodPut:
		s.version++
		got.Metadata.ResourceVersion = strconv.Itoa(s.version)
		s.have = &got
	case s.have == nil:
		fail(http.StatusNotFound, "NotFound")
		return
	case r.Method == http.MethodDelete:
		s.have = nil
	}
	_ = json.NewEncoder(w).Encode(s.have)
}

// hold lets someone have the lease for a number of seconds, since a while ago.
func (s *leases) hold(holder string, seconds int, since time.Duration) {
	s.version++
	s.have = new(leased)
	s.have.Metadata.ResourceVersion = strconv.Itoa(s.version)
	s.have.Spec.Holder, s.have.Spec.Seconds = holder, seconds
	s.have.Spec.Renewed.Time = time.Now().Add(-since)
}

func TestALeaseHasOneHolder(t *testing.T) {
	for name, c := range map[string]struct {
		holder  string // "" for none
		seconds int
		since   time.Duration
		faster  string
		want    string // who has it afterwards, "" for this process
	}{
		"no one":                   {},
		"someone":                  {"other, process 8 on n", 60, 0, "", "other, process 8 on n"},
		"someone long ago":         {"other, process 8 on n", 0, time.Hour, "", ""},
		"given up":                 {"", 60, time.Hour, "", ""},
		"another process of it":    {"run, process 8 on n", 60, 0, "", ""},
		"a run of a similar name":  {"run2, process 8 on n", 60, 0, "", "run2, process 8 on n"},
		"itself":                   {"run, process 7 on n", 60, 0, "", ""},
		"someone faster":           {"", 0, 0, "other, process 8 on n", "other, process 8 on n"},
		"one of it that is faster": {"", 0, 0, "run, process 9 on n", ""},
		"someone faster than this": {"other, process 8 on n", 0, time.Hour, "third, process 9 on n", "third, process 9 on n"},
	} {
		s := new(leases)
		if c.holder != "" || c.seconds > 0 {
			s.hold(c.holder, c.seconds, c.since)
		}
		s.faster = c.faster
		l := workloadOf(t, s, "deployment/vllm").Lease("run", "process 7 on n")
		if err := l.Check(t.Context()); (err != nil) != (c.want != "" && c.faster == "") {
			t.Errorf("%s: Check: %v", name, err)
		}
		err := l.Take(t.Context(), false)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), "another rooftop tunes deployment/vllm: "+c.want+", since") || s.have.Spec.Holder != c.want {
				t.Errorf("%s: %v, of %s", name, err, s.have.Spec.Holder)
			}
			l.Release()
			if s.have == nil {
				t.Errorf("%s: that of another one is deleted", name)
			}
			continue
		}
		if err != nil || s.have.Spec.Holder != "run, process 7 on n" || s.have.Spec.Seconds != 60 || time.Since(s.have.Spec.Renewed.Time) > time.Minute {
			t.Errorf("%s: %v, %+v", name, err, s.have)
		}
		l.Release()
		if s.have != nil {
			t.Errorf("%s: it is held after Release", name)
		}
	}
}
